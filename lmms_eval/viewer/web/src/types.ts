// Shapes of the pieces that lmms_eval/viewer writes.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

export interface Cell {
  value: number | null;
  low: number | null;
  high: number | null;
  n: number;
  method?: string;
  /** What the interval is about; empty without one. */
  about?: string;
  few?: boolean;
  /** How many documents lack a score, and the bounds whatever they would score; empty if none does. */
  missing?: string;
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
  per_text: number;
  outcomes: Outcomes;
  /** Of a run that is followed; changes where rows become others than before. */
  form?: string;
}

export interface LiveScore {
  value: number | null;
  low: number | null;
  high: number | null;
  n: number;
  of: number;
  reason: string;
}

export interface LiveTask {
  name: string;
  requested: number;
  done: number;
  failed: number;
  score: LiveScore | null;
  reason: string;
}

/** A run that is followed by its journals. */
export interface Live {
  is_going: boolean;
  is_read: boolean;
  requested: number;
  done: number;
  scored: number;
  unscored: number;
  failed: number;
  rate: number | null;
  rate_overall: number | null;
  seconds_left: number | null;
  tokens_in: number;
  tokens_out: number;
  token_rate: number | null;
  in_flight: number | null;
  concurrency: number | null;
  processes: { host: string; pid: number; memory: number | null }[];
  gpus: { name: string; busy: number | null; used: number | null; total: number | null }[];
  score: LiveScore | null;
  reasons: [string, number][];
  tasks: LiveTask[];
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
  /** Numbers of benchmarks over several tasks. */
  headlines: ResultRow[];
  groups: Record<string, string[]>;
  warnings: Warning[];
  notes: string[];
  tasks: TaskEntry[];
  /** Options by which samples were chosen, none where all are shown. */
  selection: { how: string[]; shown: number; of: number };
  live?: Live;
}

export interface Report {
  written: number;
  runs: RunEntry[];
  /** Pairs of runs (numbers) that are compared. */
  compared?: [number, number][];
  options: { media: string; chosen: string[]; redact: string[]; single_file: boolean; compare?: boolean };
  view?: { folder: string; problems: string[] };
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

export interface Distributions {
  latency: Histogram | null;
  tokens_in: Histogram | null;
  tokens_out: Histogram | null;
}

export interface TaskDetails extends Distributions {
  breakdowns: Breakdown[];
  finish: Record<string, number>;
  reasons: Record<string, number>;
}

/** As the classes of lmms_eval/viewer/certainty.py. */
export interface CertaintyNumber {
  name: string;
  value: number | null;
  low: number | null;
  high: number | null;
  about: string;
  note: string;
  unit: string;
  is_difference: boolean;
  verdict: string;
}

export interface CertaintyShare {
  name: string;
  value: number;
}

export interface CertaintyPart {
  title: string;
  sentence: string;
  numbers: CertaintyNumber[];
  shares: CertaintyShare[];
  notes: string[];
}

export interface RunDetails {
  /** Sentences about all tasks together, and the parts of each task. */
  certainty: { lines: string[]; tasks: Record<string, CertaintyPart[]> };
  tasks: Record<string, TaskDetails>;
  /** Over the samples of all tasks. */
  all: Distributions;
  document: JsonObject;
  state: JsonObject;
}

/** What is said about a sample, in the words of lmms_eval/viewer/samples.py. */
export type Verdict = "wrong" | "partly" | "correct" | "unscored" | "failed";

/** A column of samples. Without any of the last five its cells stand in pieces, texts in those of the rows. */
export interface ColumnFacts {
  key: string;
  kind: "texts" | "numbers" | "codes";
  /** What codes stand for; where it is absent it has a piece of its own. */
  values?: string[];
  empty?: boolean;
  /** Whole numbers from this one on. */
  from?: number;
  /** Every code is 0. */
  same?: boolean;
  /** The worst and the best score of a metric for one sample, if they are known; the worst is null without a bound. */
  ends?: [number | null, number];
  /** Decimal places of a metric's scores. */
  decimals?: number;
  /** Samples by verdict: of a metric by its ends, of the column `status` those without a score. */
  verdicts?: Partial<Record<Verdict, number>>;
  all?: (string | number | null)[];
}

export interface TaskIndex {
  count: number;
  per_rows: number;
  per_column: number;
  columns: ColumnFacts[];
  /** The first id of each piece of sorted ids. */
  names?: string[];
}

export type RowTexts = Record<string, string[]>;

export interface NamedPlaces {
  ids: string[];
  places: number[];
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

/** A box (left, top, right, bottom), a point (left, top) or a mask (a picture), over one medium, else the last. */
export interface Shape {
  of: "answer" | "reference";
  at?: number[];
  src?: string;
  label: string;
  medium?: number;
}

export interface Sample {
  id: string;
  lines: JsonObject[];
  media?: Medium[];
  made?: Record<string, Medium>;
  shapes?: Shape[];
  /** Its media are a piece of their own. */
  media_apart?: boolean;
}

/** An answer to score. What the judge replied is apart: it is shown when asked for. */
export interface LabelSample {
  id: string;
  lines: JsonObject[];
  reference: string;
  media: Medium[];
  /** A number names one of `media`. */
  made: Record<string, Medium | number>;
  questions: JsonObject[];
  score: number | null;
  verdicts: JsonObject[];
}

export interface Labels {
  key: string;
  task: string;
  columns: string[];
  rows: string[][];
  low: number;
  high: number;
  choices: number[];
  samples: LabelSample[];
  file: string;
  command: string;
}
