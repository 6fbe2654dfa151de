/** What the console's server sends; see src/tailrace/console. */

export interface Fault {
  error: string;
  detail?: string;
  hint?: string;
  code: string;
  traceback?: string;
  /** Where one logs in, if the console knows an issuer. */
  login?: string;
}

/** Who looks at this page. */
export interface Me {
  role: "operator" | "viewer";
  user: string;
  way: "open" | "token" | "oidc" | "proxy";
}

export interface Part {
  name: string;
  kind: string;
  state: string;
  pid?: number;
  freshness_ms?: number | null;
  lag?: number | null;
  error?: Fault | null;
  [fact: string]: unknown;
}

export interface TopicFigures {
  name: string;
  partitions: number;
  records: number;
  rate: number;
  bytes?: number;
  internal: boolean;
}

export interface GroupFigures {
  name: string;
  state: string;
  members: number;
  lag: number;
  holds_back?: string[];
}

export interface Alarm {
  level: "warning" | "critical";
  what: string;
  message: string;
  hint: string;
}

export interface Live {
  at: number;
  project: string;
  ready: boolean;
  demo: boolean;
  parts: Part[];
  topics: TopicFigures[];
  groups: GroupFigures[];
  alarms: Alarm[];
}

export interface GraphNode {
  name: string;
  kind: string;
  label: string;
}

export interface Graph {
  nodes: GraphNode[];
  edges: { from: string; to: string }[];
}

export type Row = Record<string, unknown>;

export interface Rows {
  rows: Row[];
  next?: string | null;
  position?: string | null;
}

export interface LogRecord {
  partition: number;
  offset: number;
  timestamp: number;
  key: string | null;
  value: string | null;
  headers: Record<string, string | null>;
}

export interface ViewAbout {
  name: string;
  key: string[];
  columns: [string, string][];
  rows: number;
}

export interface Plan {
  view: string;
  nodes: { id: string; kind: string; what: string; level: number }[];
  edges: { from: string; to: string; where: string | null }[];
}

export interface Sizes {
  view: string;
  tick: number;
  operators: { id: string; kind: string; what: string; rows: number; bytes: number }[];
}

export interface Past {
  span: [{ tick: number; at: number }, { tick: number; at: number }] | null;
  tick?: number;
  at?: number;
  position?: string;
  key?: string[];
  rows: Row[] | null;
}

export interface Moves {
  group: string;
  executed: boolean;
  partitions: { topic: string; partition: number; from: number; to: number }[];
}

export interface Progress {
  batch?: number;
  rows?: number;
  rows_per_second?: number;
  milliseconds?: number;
  [fact: string]: unknown;
}

export interface Pipelines {
  state: string;
  tick: { number: number | null; milliseconds: number | null; rows: number | null; lag: number | null; freshness_ms: number | null };
  error: Fault | null;
  dead: number;
  late: Record<string, number>;
  watermarks: Record<string, number>;
  views: { name: string; declared: string | null; filling: boolean; records: number }[];
  streams: { name: string; declared: string | null; progress: Progress | null; records: number; late: number; dead: number }[];
}

export interface Letters {
  total: number;
  letters: { record: string; reason: string | null; content: unknown; stack?: string | null }[];
}

export interface Sink {
  name: string;
  of: string;
  to: string;
  kind: string;
}

export interface Verification {
  sink: string;
  in_step: boolean;
  rows: number;
  position: string;
  skipped: number;
  repaired: number;
  differences: { key: Row; expected: Row | null; found: Row | null }[];
}

export interface TableHistory {
  table: string;
  versions: { version: number; position: string | null; key: string[]; columns: { name: string; type: string; spark: string; nullable: boolean }[]; changes: string[] }[];
}

export interface EventTopic {
  topic: string;
  partitions: number;
  types: string[];
  commands: Record<string, string[]>;
  publish: boolean;
  events: number | null;
  bytes: number | null;
  streams: number | null;
  foreign: number | null;
  rebuilt_seconds: number | null;
  rate: number | null;
  owners?: { partition: number; owner: string | null; producer_id: number | null; epoch: number | null; waiting: number | null; events: number | null }[];
}

export interface StateAt {
  stream: string;
  version: number;
  position: string | null;
  state: unknown;
}

export interface StreamEvent {
  version: number;
  type: string;
  at: string;
  event: unknown;
  position: string;
  id: string;
  command: string;
  name: string | null;
  cause: string | null;
  correlation: string | null;
  actor: string | null;
}

export interface Series {
  at: number[];
  values: number[];
}

/** A pattern of events as it is declared, and how it fares. */
export interface PatternAbout {
  name: string;
  reads: string;
  key: string[];
  match: string;
  state: string;
  watermark: string | null;
  late: number;
  dead: number;
  error: Fault | null;
}

/** The steps of a pattern, and what waits at each as of its last tick. */
export interface PatternSteps {
  name: string;
  steps: { id: string; variable: string; open: number }[];
  edges: [string, string][];
  matches: number;
  timeouts: number;
  retracted: number;
  open: number;
  queued: number;
  oldest_open: string | null;
  watermark: string | null;
  tick: number;
  partials?: { began_at: string; reached: string; rows: { variable: string; at: string; row: Record<string, unknown> }[] }[];
}
