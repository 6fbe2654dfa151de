/** The live state: one event stream feeds every page; it comes back by itself. */

import { signal } from "@preact/signals";
import { ApiError, call, me as askWho } from "./api";
import type { Fault, Live, Me, Series } from "./types";

export const live = signal<Live | null>(null);
export const connected = signal(false);
/** Whether the server wants a token that this page does not have. */
export const locked = signal(false);
/** Where one logs in, if the console knows an issuer. */
export const loginAt = signal("");
export const me = signal<Me | null>(null);
/** Where the views are: changes as soon as they move. */
export const moved = signal("");
export const route = signal(location.hash.slice(1) || "/");

const KEPT = 1800;
/** Figures of the last half hour by name, for the charts: seconds and values. */
export const history = new Map<string, Series>();

export function remember(name: string, at: number, value: number): void {
  const series = history.get(name) ?? { at: [], values: [] };
  series.at.push(at / 1000);
  series.values.push(value);
  if (series.at.length > KEPT) {
    series.at.shift();
    series.values.shift();
  }
  history.set(name, series);
}

/** Put what the server remembers before what this page has seen itself. */
export function seed(name: string, past: Series): void {
  const own = history.get(name) ?? { at: [], values: [] };
  const first = own.at[0] ?? Infinity;
  const older = past.at.map((at) => at / 1000).filter((at) => at < first);
  history.set(name, { at: [...older, ...own.at], values: [...past.values.slice(0, older.length), ...own.values] });
}

/** Figures worth a chart, by the same names as the server's history. */
export function* figures(state: Live): Generator<[string, number]> {
  yield ["all:rate", state.topics.reduce((sum, topic) => sum + (topic.internal ? 0 : topic.rate), 0)];
  for (const topic of state.topics) yield [`topic:${topic.name}`, topic.rate];
  for (const group of state.groups) yield [`group:${group.name}`, group.lag];
  for (const part of state.parts) {
    const name = `part:${part.kind}-${part.name}`;
    const facts = [["freshness_ms", name], ["lag", `${name}:lag`], ["wal_retained_bytes", `${name}:wal`], ["tick_ms", `${name}:tick`], ["tick_rows", `${name}:rows`]] as const;
    for (const [fact, series] of facts) {
      const value = part[fact];
      if (typeof value === "number") yield [series, value];
    }
    for (const [stream, progress] of Object.entries((part["streams"] ?? {}) as Record<string, { milliseconds?: number }>)) {
      if (typeof progress.milliseconds === "number") yield [`stream:${stream}`, progress.milliseconds];
    }
  }
}

export function take(state: Live): void {
  for (const [name, value] of figures(state)) remember(name, state.at, value);
  live.value = state;
}

/** Why a view stands still while the others go on. */
export function viewFault(state: Live | null, name: string): Fault | undefined {
  const of = state?.parts.find((part) => part.kind === "pipelines")?.["failed"] as Record<string, Fault> | undefined;
  return of?.[name];
}

const KINDS = ["message", "position", "snapshot", "change", "changes"] as const;

/** An event stream that comes back by itself, and rests while its tab is hidden: a browser
 * allows only a few connections to one host, and nobody looks. Returns how to end it. */
export function follow(url: string, take: (data: string, kind: string) => void, lost: () => void): () => void {
  let pause = 500;
  let source: EventSource | null = null;
  let timer = 0;
  const close = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  const open = () => {
    close();
    source = new EventSource(url);
    const told = (event: MessageEvent) => {
      pause = 500;
      take(event.data as string, event.type);
    };
    for (const kind of KINDS) source.addEventListener(kind, told as EventListener);
    source.onerror = () => {
      close();
      lost();
      timer = window.setTimeout(open, pause);
      pause = Math.min(pause * 2, 5000);
    };
  };
  const seen = () => (document.hidden ? close() : open());
  document.addEventListener("visibilitychange", seen);
  if (!document.hidden) open();
  return () => {
    document.removeEventListener("visibilitychange", seen);
    close();
  };
}

export function connect(): void {
  void askWho().then((who) => (me.value = who), () => undefined); // not known yet: the page is locked
  follow(
    "api/live",
    (data, kind) => {
      connected.value = true;
      if (kind === "position") moved.value = data;
      else take(JSON.parse(data) as Live);
    },
    () => {
      connected.value = false;
      // An event stream does not tell why it ended; a call does.
      call("api/status").then(() => (locked.value = false), (error: unknown) => {
        const fault = error instanceof ApiError ? error.fault : null;
        locked.value = fault?.code === "token-needed" || fault?.code === "no-role";
        loginAt.value = fault?.login ?? "";
      });
    },
  );
  addEventListener("hashchange", () => {
    route.value = location.hash.slice(1) || "/";
  });
}
