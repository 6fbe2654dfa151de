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
  connector_states?: Record<string, string>;
  [fact: string]: unknown;
}

export interface TopicFigures {
  name: string;
  partitions: number;
  records: number;
  rate: number;
  bytes?: number;
  internal: boolean;
  /** Records between the first and the end offset; `records` counts from the beginning. */
  kept?: number;
  cleanup?: string | null;
  retention_ms?: string | null;
  groups?: number;
  /** Of the group furthest behind. */
  lag?: number | null;
}

export interface BrokerAbout {
  id: number;
  address: string;
  rack: string | null;
  leaders: number;
  replicas: number;
  bytes: number;
  controller: boolean;
  config: Record<string, string | null>;
  changed: string[];
  fixed: string[];
  about: Record<string, string>;
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

/** What a project declares, and those of the pages that not every project needs which this one does. */
export interface Topology extends Graph {
  pages: string[];
}

/** A subject of the registry as `GET /api/subjects/NAME` tells it; newest version first. */
export interface SubjectAbout {
  name: string;
  level: string;
  versions: { version: number; id: number; type: string; schema: string; references: { name: string; subject: string; version: number }[]; referenced_by: number[] }[];
  left_out: number;
  before: number | null;
  after: number;
  lines: string[];
}

/** A connector as `GET /api/connectors` lists it. */
export interface ConnectorRow {
  name: string;
  type: string;
  class: string;
  state: string;
  running: number;
  count: number;
  failed: number;
  trace: string | null;
}

/** One connector as `GET /api/connectors/NAME` tells it. */
export interface ConnectorAbout extends ConnectorRow {
  config: Record<string, string>;
  tasks: { id: number; state: string; worker_id: string; trace?: string }[];
  worker: string;
  offsets: { partition: Record<string, unknown>; offset: Record<string, unknown> | null }[];
  topics: string[];
}

/** A mirror as `GET /api/mirrors/NAME` tells it. */
export interface MirrorAbout {
  name: string;
  state: string | null;
  from: string;
  to: string;
  patterns: string[];
  rule: string | null;
  lag_records: number | null;
  lag_ms: number | null;
  records: number;
  conflicts: number;
  topics: { topic: string; partition: number; mirrored: number; source_end: number | null; lag_records: number | null; stopped?: { code: string; message: string; detail: string } }[];
}

export interface FailOver {
  executed: boolean;
  not_mirrored: number | null;
  mirrored_until: number | null;
  groups: Record<string, Record<string, number>>;
  living: string[];
}

export interface FailBack {
  executed: boolean;
  only_at_source: number;
  to_copy: number;
  topics: string[];
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

/** A reaction with its open processes; nothing of their states. */
export interface ReactionAbout {
  reaction: string;
  sources: string[];
  error: string;
  more: boolean;
  processes: OpenProcess[];
}

export interface OpenProcess {
  process: string;
  stuck: boolean;
  command: string;
  attempts: number;
  timers: { name: string; due: string }[];
  error: string;
}

export interface Erasure {
  id: string;
  at: string;
  kind: string;
  topic: string;
  state: string;
  reason: string;
  counts: Record<string, number>;
  unreachable: string[];
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

export interface PartitionPlace {
  topic: string;
  partition: number;
}

export interface ClusterAbout {
  controller: { id: number; epoch: number | null; voters: number[] };
  brokers: { id: number; state: string; address: string; rack: string | null; leaders: number; replicas: number; bytes: number }[];
  topics: {
    name: string;
    replication_factor: number;
    min_insync: number;
    unclean: boolean;
    survives: string;
    partitions: { partition: number; leader: number; leader_epoch: number; preferred: number; replicas: number[]; in_sync: number[]; eligible: number[] }[];
  }[];
  under_replicated: PartitionPlace[];
  under_min_insync: PartitionPlace[];
  offline: PartitionPlace[];
  suspects: { broker: number; partitions: number }[];
  moves: (PartitionPlace & { replicas: number[]; adding: number[]; removing: number[]; progress: number | null })[];
  throttles: { kind: string; name: string; setting: string; value: string }[];
  left_throttles: boolean;
  flapping: (PartitionPlace & { changes: number })[] | null;
  events: (PartitionPlace & { at: number; kind: string; text: string })[] | null;
}

/** Stored queries as they are declared, and how they fare. */
export interface PercolationAbout {
  name: string;
  reads: string;
  queries_of: string;
  text: string[];
  fields: string[];
  state: string;
  tick: number;
  dead: number;
  error: Fault | null;
}

export interface StoredQuery {
  query_id: unknown;
  query_version: number;
  query: string;
}

/** The queries of a percolation, and what each did with the last events. */
export interface PercolationQueries {
  name: string;
  tick: number;
  count: number;
  documents: number;
  queries: (StoredQuery & { candidates: number; matches: number; micros: number; always: boolean })[];
}

/** Which queries match an event, and why. */
export interface PercolationTried {
  name: string;
  tick: number;
  queries: number;
  count: number;
  matches: (StoredQuery & { because: string[] })[];
}
