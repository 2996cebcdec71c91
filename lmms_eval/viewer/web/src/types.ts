// Shapes of the pieces that lmms_eval/viewer writes.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

export interface Cell {
  value: number | null;
  low: number | null;
  high: number | null;
  n: number;
  method?: string;
  few?: boolean;
}

export interface ResultRow extends Cell {
  task: string;
  metric: string;
  filter: string;
  stderr?: number | null;
  higher: boolean;
  withheld?: string;
  partial?: number | null;
}

export interface Warning {
  kind: string;
  task: string;
  text: string;
}

export interface Outcomes {
  requested?: number;
  scored?: number;
  unscored?: number;
  failed?: number;
  not_asked?: number;
  coverage?: number;
  reasons?: Record<string, number>;
  answers?: number;
  blank?: number;
  filtered?: number;
  truncated?: number;
}

export interface TaskEntry {
  name: string;
  key: string;
  samples: number;
  index_parts: number;
  per_index: number;
  per_text: number;
  outcomes: Outcomes;
}

export interface RunEntry {
  number: number;
  name: string;
  source: string;
  kind: string;
  model: string;
  model_args: Json;
  date: string;
  state: string;
  usage: JsonObject;
  timing: JsonObject;
  seconds: Json;
  command: string;
  rows: ResultRow[];
  groups: Record<string, string[]>;
  warnings: Warning[];
  notes: string[];
  tasks: TaskEntry[];
}

export interface Report {
  written: number;
  runs: RunEntry[];
  options: { media: string; only_failed: boolean; limit: number | null; redact: string[]; single_file: boolean };
}

export interface Histogram {
  counts: number[];
  edges: number[];
  beyond: number;
  n: number;
  median: number;
  p90: number;
  p99: number;
  max: number;
}

export interface Part extends Cell {
  name: string;
}

export interface Breakdown {
  column: string;
  metrics: Record<string, Part[]>;
}

export interface TaskDetails {
  breakdowns: Breakdown[];
  latency: Histogram | null;
  tokens_in: Histogram | null;
  tokens_out: Histogram | null;
  finish: Record<string, number>;
  reasons: Record<string, number>;
}

export interface RunDetails {
  tasks: Record<string, TaskDetails>;
  document: JsonObject;
  state: JsonObject;
}

export interface Coded {
  values: (string | null)[];
  codes: number[];
}

export interface IndexPart {
  count: number;
  id: string[];
  status: number[];
  finish: Coded;
  reason: Coded;
  latency: (number | null)[];
  in: (number | null)[];
  out: (number | null)[];
  answer: string[];
  target: string[];
  thumb: string[];
  scores: Record<string, (number | null)[]>;
  metadata: Record<string, Coded>;
}

export interface Medium {
  kind: string;
  name: string;
  src?: string;
  full?: string;
  width?: number;
  height?: number;
  seconds?: number;
  frames?: { src: string; time: number | null }[];
  frames_seen?: number;
  missing?: string;
}

export interface Shape {
  of: "answer" | "reference";
  at: number[];
  label: string;
}

export interface Sample {
  id: string;
  lines: JsonObject[];
  media?: Medium[];
  made?: Record<string, Medium>;
  shapes?: Shape[];
}
