// The contract with the server: every address that the page asks, and the forms of what it answers.
import type { Counted, ResultRow } from "../types";

/** The source of a search that is not restricted to this package or to a pack. */
export const ANY = "any";

export type Value = string | number | boolean | Value[] | { [name: string]: Value };
export type Values = Record<string, Value>;

export interface ModelChoice {
  name: string;
  sort: string;
  kind: string;
  aliases: string[];
  text: string;
  missing: string[];
}

export type Kind = "switch" | "whole number" | "number" | "JSON" | "text";
export type Default = string | number | boolean | null;

export interface Argument {
  name: string;
  kind: Kind;
  default: Default;
  is_required: boolean;
  choices: string[];
  meaning: string;
  other_names: string[];
  is_first: boolean;
  is_secret: boolean;
}

export interface ModelDetails {
  name: string;
  arguments: Argument[];
  fixed: Values;
}

export interface TaskChoice {
  name: string;
  kind: "task" | "group" | "tag";
  title: string;
  documents: number | null;
  modalities: string[];
  needs: string[];
  tags: string[];
  output_type: string;
  /** Tasks of a group or tag; 0: not known yet. */
  size: number;
  /** The pack that it comes from; empty outside packs. */
  pack: string;
}

export interface TaskSearch {
  word: string;
  kind: string;
  modality: string;
  need: string;
  source: string;
  most: number;
}

export interface FoundTasks {
  tasks: TaskChoice[];
  found: number;
  total: number;
  sources: string[];
  hint: string;
  /** Whether the facts of groups are known already. */
  is_complete: boolean;
}

export interface TaskDetails {
  name: string;
  kind: string;
  file: string;
  title: string;
  tags: string[];
  documents: number | null;
  modalities: string[];
  licence: string[];
  download: string[];
  chance: string[];
  published: string[];
  controls: string[];
  needs_text: string[];
  missing: string[];
  parts: { name: string; documents: number | null; data_set: string; configuration: string; split: string; metrics: { name: string }[] }[];
}

export interface OptionChoice {
  name: string;
  group: string;
  kind: Kind;
  default: Default;
  choices: string[];
  text: string;
  metavar: string;
  is_usual: boolean;
}

export interface Offer {
  version: string;
  models: ModelChoice[];
  options: OptionChoice[];
  gpus: string[];
  /** An evaluation for those who have chosen nothing yet. */
  first: { text: string; request: Request };
}

export interface Problem {
  name: string;
  text: string;
  line: number | null;
}

/** Names of options and their values, as `POST /evaluate` takes them. */
export type Request = Values & { model?: string; model_args?: Values; tasks?: string[] };

export interface Preview {
  command: string;
  yaml: string;
  problems: Problem[];
}

export interface Imported {
  request: Request;
  problems: Problem[];
}

export type State = "queued" | "running" | "completed" | "failed" | "cancelled";

export interface JobEntry {
  job_id: string;
  state: State;
  created_at: string;
  started_at: string | null;
  completed_at: string | null;
  model: string;
  model_args: string;
  tasks: string[];
  position: number | null;
  is_stopping: boolean;
  /** The model's own name, else that of the back end. */
  name: string;
  /** Why it failed, in one line. */
  reason: string;
  /** The numbers that stand for the run. */
  headlines: ResultRow[];
  headlines_left_out: number;
  /** Of a run that goes on. */
  progress: Pick<Progress, "requested" | "done" | "failed" | "seconds_left"> | null;
}

export interface TaskOutcomes {
  task: string;
  requested: number;
  scored: number | null;
  unscored: number | null;
  failed: number | null;
  not_asked: number | null;
  reasons: Record<string, number> | null;
}

/** The tables of the results file. */
export interface Tables {
  headlines: ResultRow[];
  rows: ResultRow[];
  counts: Counted[];
  outcomes: TaskOutcomes[];
}

export interface Job extends Omit<JobEntry, "progress"> {
  error: string | null;
  request: Request;
  command: string;
  yaml: string;
  tables: Tables | null;
  progress: Progress | null;
  can_report: boolean;
  can_view: boolean;
}

/** A piece of a log; `next` is the place behind it. */
export interface LogPiece {
  text: string;
  next: number;
}

export interface ScoreSoFar {
  value: number | null;
  low: number | null;
  high: number | null;
  n: number;
  of: number;
  reason: string;
}

export interface TaskProgress {
  name: string;
  requested: number;
  done: number;
  failed: number;
  score: ScoreSoFar | null;
  reason: string;
}

export interface Progress {
  is_read: boolean;
  requested: number;
  done: number;
  scored: number;
  unscored: number;
  failed: number;
  rate: number | null;
  rate_overall: number | null;
  seconds_left: number | null;
  tokens: number;
  token_rate: number | null;
  in_flight: number | null;
  concurrency: number | null;
  score: ScoreSoFar | null;
  reasons: { text: string; count: number }[];
  tasks: TaskProgress[];
}

export interface Machine {
  sections: Record<string, { name: string; value: string; is_present: boolean | null }[]>;
  /** GPUs that the server gives to runs. */
  gpus: string[];
  /** Where the server keeps its jobs. */
  folder: string;
  checked_at: string;
}

export interface Pages {
  name: string;
  state: "making" | "ready" | "failed";
  error: string;
}

export class Refusal extends Error {
  constructor(
    readonly status: number,
    text: string,
  ) {
    super(text);
  }
}

async function answer<T>(response: Response): Promise<T> {
  if (response.ok) return (await response.json()) as T;
  const text = await response.text();
  throw new Refusal(response.status, told(text) || `the server answered ${response.status}`);
}

/** What an error says: a text, or the `detail` of one in JSON, which may be a list. */
function told(text: string): string {
  try {
    const { detail } = JSON.parse(text) as { detail?: unknown };
    if (Array.isArray(detail)) return detail.map((one: { msg?: string }) => String(one.msg ?? "")).join("; ");
    return detail === undefined ? text : String(detail);
  } catch {
    return text.slice(0, 2000);
  }
}

async function sent(address: string, options: RequestInit): Promise<Response> {
  try {
    return await fetch(address, options);
  } catch {
    throw new Error("The server does not answer. Is lmms-eval ui still running?");
  }
}

const get = async <T>(address: string): Promise<T> => answer<T>(await sent(address, { cache: "no-store" }));

const post = async <T>(address: string, body: unknown, headers: Record<string, string> = {}): Promise<T> =>
  answer<T>(
    await sent(address, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    }),
  );

const part = encodeURIComponent;

/** The terms of a search that were given. */
function query({ source, ...wanted }: TaskSearch): string {
  const given = Object.entries(wanted).filter(([, value]) => value !== "").map(([key, value]) => [key, String(value)]);
  return new URLSearchParams(source === ANY ? given : [...given, ["source", source]]).toString();
}

export const api = {
  offer: () => get<Offer>("ui/offer"),
  search: (wanted: TaskSearch) => get<FoundTasks>(`ui/tasks?${query(wanted)}`),
  tasks: (names: string[]) => get<{ tasks: TaskChoice[] }>(`ui/tasks?${new URLSearchParams(names.map((name) => ["name", name]))}`),
  model: (name: string) => get<ModelDetails>(`ui/models/${part(name)}`),
  task: (name: string) => get<TaskDetails>(`ui/tasks/${part(name)}`),
  checkTask: (name: string) => post<{ missing: string[] }>(`ui/tasks/${part(name)}/check`, {}),
  machine: (isFresh: boolean) => get<Machine>(`ui/machine${isFresh ? "?fresh" : ""}`),
  preview: (request: Request) => post<Preview>("eval/preview", request),
  importYaml: (text: string) => post<Imported>("eval/import-yaml", { yaml: text }),
  start: (request: Request, key: string) =>
    post<{ job_id: string; command: string }>("eval/start", request, { "idempotency-key": key }),
  submission: (key: string) => get<{ job_id: string | null }>(`ui/submissions/${part(key)}`),
  stop: (job: string) => post<{ message: string }>(`eval/${part(job)}/stop`, {}),
  jobs: () => get<{ jobs: JobEntry[] }>("ui/jobs"),
  job: (job: string) => get<Job>(`ui/jobs/${part(job)}`),
  log: (job: string, place: number) => get<LogPiece>(`ui/jobs/${part(job)}/log?from=${place}`),
  /** Makes the pages of one run, or of several compared, unless they are there. */
  makePages: (jobs: string[]) => post<Pages>("ui/pages", { jobs }),
};

export const pagesAddress = (name: string): string => `pages/${part(name)}/index.html`;
export const viewAddress = (job: string): string => `view/${part(job)}/`;
