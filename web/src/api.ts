/** Every call to the server. Errors come in four parts and are thrown as such. */

import { signal } from "@preact/signals";
import type {
  BrokerAbout,
  PercolationAbout,
  PercolationQueries,
  PercolationTried,
  ClusterAbout,
  Erasure,
  EventTopic,
  FailBack,
  FailOver,
  Fault,
  Graph,
  Letters,
  LogRecord,
  Me,
  ConnectorAbout,
  ConnectorRow,
  MirrorAbout,
  Moves,
  PartitionPlace,
  Past,
  PatternAbout,
  PatternSteps,
  Pipelines,
  Plan,
  ReactionAbout,
  Rows,
  Series,
  Sink,
  Sizes,
  StateAt,
  StreamEvent,
  SubjectAbout,
  TableHistory,
  Topology,
  Verification,
  ViewAbout,
} from "./types";

export class ApiError extends Error {
  constructor(readonly fault: Fault) {
    super(fault.error);
  }
}

/** The token of a link such as `tailrace up` prints, taken out of the address. */
export function tokenOfLink(): string | null {
  const given = /[#&]token=([^&]+)/.exec(location.hash)?.[1];
  if (!given) return null;
  window.history.replaceState(null, "", "#/");
  try {
    return decodeURIComponent(given);
  } catch {
    return given;
  }
}

/** Exchange the token for a cookie that scripts cannot read: calls and event streams of this
 * page carry it from then on. Whether it was the right one. */
export async function openSession(secret: string): Promise<boolean> {
  try {
    const answer = await fetch("api/session", { method: "POST", headers: { authorization: `Bearer ${secret}` } });
    return answer.ok;
  } catch {
    return false; // it does not answer: the page tells that itself
  }
}

export async function call<T>(path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = { accept: "application/json" };
  if (body !== undefined) headers["content-type"] = "application/json";
  let answer: Response;
  try {
    answer = await fetch(path, {
      method: body === undefined ? "GET" : "POST",
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch {
    throw new ApiError({ error: "the console does not answer", hint: "is `tailrace up` running?", code: "unreachable" });
  }
  if (!answer.ok) {
    const text = await answer.text();
    let fault: Fault;
    try {
      fault = JSON.parse(text) as Fault;
      if (typeof fault.error !== "string") throw new Error();
    } catch {
      fault = { error: text.slice(0, 200) || answer.statusText, code: String(answer.status) };
    }
    throw new ApiError(fault);
  }
  return (await answer.json()) as T;
}

/** The topology, and with it which pages there are. */
async function askGraph(): Promise<Graph> {
  const found = await call<Topology>("api/graph");
  needed.value = found.pages;
  return found;
}
/** Which pages the project needs of those that not every project does; null: not known yet. */
export const needed = signal<string[] | null>(null);
let early: Promise<Graph> | null = null;
/** Ask for the topology before anything is drawn: the first page waits for little else. */
export function askEarly(): void {
  early = askGraph();
  early.catch(() => undefined); // whoever uses it is told
}
export function graph(): Promise<Graph> {
  const asked = early ?? askGraph();
  early = null;
  return asked;
}
export const viewRows = (name: string, limit = 200) =>
  call<Rows>(`api/views/${encodeURIComponent(name)}?limit=${limit}`);
export const sql = (text: string) => call<Rows>("api/sql", { sql: text });
export const explain = (name: string) => call<{ text: string }>(`api/views/${encodeURIComponent(name)}/explain`);
export const topic = (name: string) =>
  call<{ name: string; config: Record<string, string>; changed?: string[]; partitions: { partition: number; first: number; end: number; bytes?: number | null }[] }>(
    `api/topics/${encodeURIComponent(name)}`,
  );
/** What a page of records is asked by; empty texts ask for nothing. */
export interface Asked {
  from: string;
  partition?: string;
  key?: string;
  value?: string;
  header?: string;
  where?: string;
}
export interface RecordPage {
  records: LogRecord[];
  next: string | null;
  scanned: number;
}
export const latest = (name: string, asked: Asked, after?: string) => {
  const given = Object.entries({ ...asked, after }).filter(([, text]) => text) as [string, string][];
  return call<RecordPage>(`api/topics/${encodeURIComponent(name)}/latest?${new URLSearchParams(given)}`);
};
export const broker = (id: number) => call<BrokerAbout>(`api/brokers/${id}`);
export const cluster = () => call<ClusterAbout>("api/cluster");
export interface MoveQuestion {
  topics?: string[];
  from?: number;
  to?: number[];
  cancel?: boolean;
}
export const move = (question: MoveQuestion, execute: boolean) =>
  call<{ executed: boolean; moves: (PartitionPlace & { from: number[]; to: number[] })[] }>("api/cluster/move", { ...question, execute });
export const elect = (topics: string[], execute: boolean) =>
  call<{ executed: boolean; elections: (PartitionPlace & { leader: number; preferred: number })[] }>("api/cluster/elect", { topics, execute });
export const group = (name: string) =>
  call<{ name: string; state: string; members: { id: string; client: string }[]; partitions: { topic: string; partition: number; committed: number; end: number; lag: number }[] }>(
    `api/groups/${encodeURIComponent(name)}`,
  );

const at = encodeURIComponent;
export const me = () => call<Me>("api/me");
export const logOut = () => call<unknown>("api/logout", {});
export const views = () => call<{ views: ViewAbout[] }>("api/views");
export const plan = (name: string) => call<Plan>(`api/plans/${at(name)}`);
export const sizes = (name: string) => call<Sizes>(`api/state/${at(name)}`);
export const past = (name: string, tick?: number) => call<Past>(`api/past/${at(name)}${tick === undefined ? "" : `?tick=${tick}`}`);
export const reset = (name: string, to: string, execute: boolean) => call<Moves>(`api/groups/${at(name)}/reset`, { to, execute });
export const pipelines = () => call<Pipelines>("api/pipelines");
export const patterns = () => call<{ patterns: PatternAbout[] }>("api/patterns");
export const pattern = (name: string, key: string[]) =>
  call<PatternSteps>(`api/patterns/${at(name)}${key.length ? `?${key.map((part) => `key=${encodeURIComponent(part)}`).join("&")}` : ""}`);
export const explainPattern = (name: string) => call<{ text: string; match: string }>(`api/patterns/${at(name)}/explain`);
export const letters = (name: string) => call<Letters>(`api/dead-letters/${at(name)}`);
export const retry = (name: string) => call<{ retried: number }>(`api/dead-letters/${at(name)}/retry`, {});
export const sinks = () => call<{ sinks: Sink[] }>("api/sinks");
export const verify = (name: string, repair: boolean) => call<Verification>(`api/sinks/${at(name)}/verify`, { repair });
export const subjects = () => call<{ registry: string | null; subjects: string[] }>("api/subjects");
export const subject = (name: string, before: number | null, after: number | null) => call<SubjectAbout>(`api/subjects/${at(name)}${before && after ? `?before=${before}&after=${after}` : ""}`);
export const connectors = () => call<{ worker: string | null; connectors: ConnectorRow[] }>("api/connectors");
export const connector = (name: string) => call<ConnectorAbout>(`api/connectors/${at(name)}`);
export const operateConnector = (name: string, act: string) => call<{ asked: string }>(`api/connectors/${at(name)}/${act}`, {});
export const restartTask = (name: string, task: number) => call<{ task: number }>(`api/connectors/${at(name)}/tasks/${task}/restart`, {});
export const mirrors = () => call<{ mirrors: MirrorAbout[] }>("api/mirrors");
export const mirror = (name: string) => call<MirrorAbout>(`api/mirrors/${at(name)}`);
export const failOver = (name: string, start: string, execute: boolean) => call<FailOver>(`api/mirrors/${at(name)}/fail-over`, { start, execute });
export const failBack = (name: string, execute: boolean) => call<FailBack>(`api/mirrors/${at(name)}/fail-back`, { execute });
export const schemas = () => call<{ tables: TableHistory[] }>("api/schemas");
export const eventTopics = () => call<{ topics: EventTopic[] }>("api/events");
export const eventTopic = (name: string) => call<EventTopic>(`api/events/${at(name)}`);
export const reactions = () => call<{ reactions: ReactionAbout[] }>("api/reactions");
export const erasures = () => call<{ erasures: Erasure[] }>("api/erasures");
export const stateOf = (topic: string, stream: string, version?: number) =>
  call<StateAt>(`api/events/${at(topic)}/${at(stream)}${version === undefined ? "" : `?version=${version}`}`);
export const historyOf = (topic: string, stream: string, first: number, limit: number) =>
  call<{ events: StreamEvent[]; next: number | null }>(`api/events/${at(topic)}/${at(stream)}/history?first=${first}&limit=${limit}`);
export const history = (name: string) => call<Series>(`api/history?name=${at(name)}`);

export interface Proof {
  database: { orders: number; value: string };
  view: { orders: number; value: string } | null;
  position?: string;
  ms?: number;
  waiting?: string;
  paid: { order: number; amount: string; name: string; country: string }[];
}
export const proof = () => call<Proof>("api/demo");
export const prove = () => call<{ rows: { what: string; database: string; view: string; equal: boolean }[]; position: string; ms: number }>("api/demo/prove", {});
export const verifyViews = () => call<{ rows: { what: string; spark: string; view: string; equal: boolean }[]; ms: number }>("api/demo/verify", {});
export const refund = (order: number) => call<{ did: string }>("api/demo/refund", { order });
export const pull = (plug: string) => call<{ did: string }>(`api/demo/${plug}`, {});

export const createTopic = (name: string, partitions: number) => call<{ created: string }>("api/topics", { name, partitions });
export const alterTopic = (name: string, config: Record<string, string | null>) => call<{ altered: string }>(`api/topics/${encodeURIComponent(name)}/config`, { config });
export const deleteTopic = (name: string) => call<{ deleted: string }>(`api/topics/${encodeURIComponent(name)}/delete`, {});
export const writeRecord = (name: string, key: string | null, value: string | null) => call<{ partition: number; offset: number }>(`api/topics/${encodeURIComponent(name)}/write`, { key, value });
export const deleteGroup = (name: string) => call<{ deleted: string }>(`api/groups/${encodeURIComponent(name)}/delete`, {});
export const events = () => call<{ events: { at: number; what: string; part: string; text: string }[] }>("api/history/events");

export const percolations = () => call<{ percolations: PercolationAbout[] }>("api/percolations");
export const percolation = (name: string) => call<PercolationQueries>(`api/percolations/${at(name)}`);
export const tryEvent = (name: string, event: unknown) => call<PercolationTried>(`api/percolations/${at(name)}/test`, { event });
