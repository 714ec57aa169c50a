// Requests to the simulator and its replies: those of crates/web/src/engine.rs.

/** A scenario: its text, and settings that override it, as in `--set KEY=VALUE`. */
export interface Source {
  text: string;
  name?: string;
  set?: [string, string][];
}

export interface Refusal {
  line: number | null;
  column: number | null;
  key: string;
  message: string;
  /** All in one line. */
  text: string;
}

export interface Direction {
  rate_bps: number | null;
  delay_s: number | null;
  queue: { kind: string; limit_packets: number | null; limit_bytes: number | null };
  errors: { bit_error_rate: number; packet_loss_rate: number };
  acks: { kind: string };
}

export interface Link {
  name: string;
  between: [string, string];
  forward: Direction | null;
  return: Direction | null;
}

export interface Node {
  name: string;
  kind: string;
  tcp?: { congestion_control?: string };
}

export interface Flow {
  name: string;
  from: string;
  to: string;
  /** Name of the flow's table in the file. */
  table: string;
  app: { kind: string };
  route: { forward: string[] } | null;
}

export interface Network {
  name: string;
  description: string | null;
  nodes: Node[];
  links: Link[];
  flows: Flow[];
}

export interface Checked {
  counts: { nodes: number; links: number; flows: number };
  name: string;
  duration_s: number;
  seed: number;
  has_random_losses: boolean;
  /** Null if the network is too large to draw. */
  network: Network | null;
}

export interface SeriesInfo {
  name: string;
  unit: string;
  samples: number;
  last_s: number | null;
}

export interface FlowSummary {
  name: string;
  outcome: string;
  bytes_delivered: number;
  start_s: number;
  finish_s: number | null;
  goodput_bps: number;
  segments_sent: number;
  segments_retransmitted: number;
  timeouts: number;
  fast_recoveries: number;
  rtt_ms: { min: number | null; mean: number | null; p95: number | null; max: number | null };
  limited_s: Record<string, number>;
  pages?: { load_s: number | null }[];
  responses?: { count: number; time_ms: { p50: number | null; p95: number | null } };
  [more: string]: unknown;
}

export interface LinkSummary {
  name: string;
  utilization: number;
  packets_delivered: number;
  packets_lost: number;
  packets_dropped: number;
  queue_max_packets: number;
  queue_max_bytes: number;
  [more: string]: unknown;
}

export interface Summary {
  scenario: string;
  seed: number;
  duration_s: number;
  ended_s: number;
  packet_hops: number;
  flows: FlowSummary[];
  links: LinkSummary[];
  [more: string]: unknown;
}

export interface PacketRow {
  time_s: number;
  link: string;
  node: string;
  event: "sent" | "received";
  from: string;
  to: string;
  bytes: number;
  text: string;
}

export interface PacketPage {
  before: number;
  packets: number;
  omitted: number;
  rows: PacketRow[];
}

/** Samples of one series: times in seconds, and the lowest and highest value there. */
export interface Samples {
  times: Float64Array;
  low: Float64Array;
  high: Float64Array;
}

/** A request to a worker. */
export type WorkerRequest =
  | { kind: "ask"; id: number; request: object }
  | { kind: "series"; id: number; request: SeriesRequest }
  | { kind: "run"; id: number; source: Source; seed: number | null; series: boolean; packets: boolean }
  | { kind: "file"; id: number; name: string; content: Uint8Array<ArrayBuffer> }
  | { kind: "stop"; id: number };

export interface SeriesRequest {
  run: number;
  indices: number[];
  range_s: [number, number];
  columns: number;
  /** Averages of the columns, for rates, in place of extremes. */
  averages?: boolean;
}

/** A reply of a worker. */
export type WorkerReply =
  | { kind: "ready" }
  | { kind: "broken"; message: string }
  | { kind: "answer"; id: number; reply: Record<string, unknown> }
  | { kind: "samples"; id: number; samples: Samples[] }
  | { kind: "progress"; id: number; share: number }
  | { kind: "ended"; id: number; run: number; summary: Summary; series: SeriesInfo[]; wallS: number }
  | { kind: "failed"; id: number; message: string; refusal: Refusal | null; stopped: boolean };
