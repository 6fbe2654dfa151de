/** What the console's server sends; see src/tailrace/console. */

export interface Fault {
  error: string;
  detail?: string;
  hint?: string;
  code: string;
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
  internal: boolean;
}

export interface GroupFigures {
  name: string;
  state: string;
  members: number;
  lag: number;
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
