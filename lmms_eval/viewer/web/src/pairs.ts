// Runs against each other: the pieces that lmms_eval/viewer/comparison.py writes, seen from the side of a baseline.
import { load } from "./chunks";
import { useMade, type Loaded } from "./common";
import { readTable, type Table } from "./table";
import type { Report, RunEntry } from "./types";

/** Runs that are shown beside each other. */
export const MOST = 5;

export type Verdict =
  | "better"
  | "worse"
  | "equivalent"
  | "ahead on this list"
  | "behind on this list"
  | "equivalent on this list"
  | "cannot tell";

export interface Difference {
  name: string;
  metric: string;
  filter: string;
  first: number;
  second: number;
  value: number;
  interval: { low: number; high: number; method: string } | null;
  /** What the interval is about. */
  estimand: "benchmark accuracy" | "generalised accuracy" | null;
  no_interval: string;
  p: number | null;
  p_holm: number | null;
  p_bh: number | null;
  test: string;
  unit: "percent" | "";
  verdict: Verdict;
  detectable: number | null;
  needed: number | null;
  needed_least: number | null;
  /** If a run stopped early: p of equal numbers over all documents of the list. */
  p_list: number | null;
  pairing: { paired: number; only_first: number; only_second: number; unscored: number[]; failed: number[] };
  sensitivity: { difference: number; n: number; low: number | null; high: number | null } | null;
  /** How the difference varies if the runs are made again, where that is known. */
  reruns: {
    half_width: number;
    half_width_high: number | null;
    is_beyond: boolean | null;
    interval: { low: number; high: number } | null;
    no_interval: string;
  } | null;
  notes: string[];
  higher_is_better: boolean;
  changed: [number, number] | null;
  /** Of a part: the value of the metadata column. */
  cell: string;
}

export interface Interval {
  low: number;
  high: number;
}

/** The mean over prompts of a difference. */
export interface OverPrompts {
  name: string;
  metric: string;
  filter: string;
  value: number;
  unit: "percent" | "";
  /** The difference with each prompt. */
  prompts: Record<string, number>;
  these: Interval | null;
  no_these: string;
  like_these: Interval | null;
  no_like_these: string;
  p_like_these: number | null;
  /** Prompts under which the first run is ahead, and behind. */
  ahead: string[];
  behind: string[];
  n: number;
}

export type Kinds = Record<string, number>;

export interface PairTask {
  task: string;
  piece: string;
  /** Keys of the task's pieces in both runs. */
  first: string;
  second: string;
  documents: number;
  shown: number;
  /** By the row's key: what the runs call the column, and how many documents there are of each kind. */
  columns: Record<string, { first: string; second: string; higher: boolean; kinds: Kinds }>;
}

interface PairNumbers {
  rows: Difference[];
  prompts?: OverPrompts[];
  tasks: PairTask[];
}

interface PairEntry {
  first: number;
  second: number;
  notes: string[];
  reason: string;
}

export interface Summary {
  /** The run with which all others are compared, where there are many. */
  reference: number | null;
  alpha: number;
  /** Differences below it do not matter; without one nothing is called equivalent. */
  margin: number | null;
  notes: string[];
  rows: number;
  ranks: Record<string, { run: string; score: number; rank: number; best: number; worst: number }[]>;
  pairs: PairEntry[];
  /** Metadata columns N of the pieces `parts-A-B-N`. */
  by: PartColumn[];
  /** What the names of its pieces begin with: of a view, which compares the runs that a page asks for. */
  prefix?: string;
}

/** The name of the summary: of a report that of all runs, of a view that of these. */
export const summaryName = (report: Report, params: URLSearchParams): string => {
  if (!report.view) return "compare";
  const ended = report.runs.filter((run) => !run.live);
  const named = ended.filter((run) => params.getAll("run").includes(run.name));
  const chosen = params.has("run") ? named.slice(0, MOST) : ended.slice(0, ended.length > MOST ? 2 : MOST);
  return chosen.length < 2 ? "" : `of-${chosen.map((run) => run.number).join("-")}-compare`;
};

export const prefixed = (summary: Summary, name: string): string => `${summary.prefix ?? ""}${name}`;

export interface PartColumn {
  column: string;
  /** Over all numbers and pairs of the report. */
  rows: number;
  /** Why there are none. */
  reason: string;
}

interface PairDocuments {
  count: number;
  first: number[] | null;
  second: number[] | null;
  columns: Record<string, { kinds: string; surprise: number[] }>;
}

/** Two runs in the order in which they are shown. */
export interface Pair extends PairNumbers {
  prompts: OverPrompts[];
  first: RunEntry;
  second: RunEntry;
  mirrored: boolean;
  notes: string[];
  reason: string;
}

export const keyOf = (row: { metric: string; filter: string }): string => `${row.metric},${row.filter}`;

/** How many documents there are of each kind; undefined where a row is no number over the documents of one task. */
export const kindsOfRow = (pair: Pair, row: Difference): Kinds | undefined =>
  pair.tasks.find((task) => task.task === row.name && Object.hasOwn(task.columns, keyOf(row)))?.columns[keyOf(row)]?.kinds;

export const entryOf = (summary: Summary, a: RunEntry, b: RunEntry): PairEntry | undefined =>
  summary.pairs.find(({ first, second }) => (first === a.number && second === b.number) || (first === b.number && second === a.number));

export const usePairs = (summary: Summary, wanted: [RunEntry, RunEntry][]): Loaded<Pair[]> =>
  useMade(prefixed(summary, wanted.map(([first, second]) => `${first.number}-${second.number}`).join()), () =>
    Promise.all(wanted.map(([first, second]) => readPair(summary, first, second))),
  );

const FIRST_ALONE = "where more than five runs have a task, each is compared with the first alone; lmms-eval compare compares any";

async function readPair(summary: Summary, first: RunEntry, second: RunEntry): Promise<Pair> {
  const entry = entryOf(summary, first, second);
  const notes = entry?.notes ?? [];
  const reason = entry ? entry.reason : summary.reference === null ? "they have no task in common" : FIRST_ALONE;
  const mirrored = entry !== undefined && entry.first !== first.number;
  if (reason || !entry) return { first, second, mirrored, notes, reason, rows: [], prompts: [], tasks: [] };
  const numbers = await load<PairNumbers>(prefixed(summary, `compare-${entry.first}-${entry.second}`));
  const { rows, tasks, prompts = [] } = mirrored
    ? { rows: numbers.rows.map(mirroredRow), tasks: numbers.tasks.map(mirroredTask), prompts: numbers.prompts?.map(mirroredPrompts) }
    : numbers;
  return { first, second, mirrored, notes, reason, rows, prompts, tasks };
}

const OPPOSITE: Record<Verdict, Verdict> = {
  better: "worse",
  worse: "better",
  equivalent: "equivalent",
  "ahead on this list": "behind on this list",
  "behind on this list": "ahead on this list",
  "equivalent on this list": "equivalent on this list",
  "cannot tell": "cannot tell",
};
const OTHER_KIND: Record<string, string> = { f: "s", s: "f", ">": "<", "<": ">" };
/** Begin of a note about a verdict that documents without a score could change. */
export const DEPENDS = "depends on ";

/** Such a note ends with the verdict of the scored documents alone, which turns with the runs. */
function mirroredNote(note: string): string {
  const found = note.startsWith(DEPENDS) ? /: (better|worse|(?:ahead|behind) on this list) over the others/.exec(note) : null;
  return found ? note.replace(`: ${found[1]} over`, `: ${OPPOSITE[found[1] as Verdict]} over`) : note;
}

const negative = (value: number): number => (value === 0 ? 0 : -value);
const turned = (value: number | null): number | null => value && negative(value);

const mirroredInterval = (found: Interval | null): Interval | null => found && { low: negative(found.high), high: negative(found.low) };

function mirroredPrompts(row: OverPrompts): OverPrompts {
  return {
    ...row,
    value: negative(row.value),
    prompts: Object.fromEntries(Object.entries(row.prompts).map(([name, value]) => [name, negative(value)])),
    these: mirroredInterval(row.these),
    like_these: mirroredInterval(row.like_these),
    ahead: row.behind,
    behind: row.ahead,
  };
}

export function mirroredRow(row: Difference): Difference {
  const { pairing, interval, sensitivity, reruns, changed } = row;
  return {
    ...row,
    first: row.second,
    second: row.first,
    value: negative(row.value),
    interval: interval && { ...interval, low: negative(interval.high), high: negative(interval.low) },
    reruns: reruns && {
      ...reruns,
      interval: reruns.interval && { low: negative(reruns.interval.high), high: negative(reruns.interval.low) },
    },
    verdict: OPPOSITE[row.verdict],
    notes: row.notes.map(mirroredNote),
    sensitivity: sensitivity && {
      ...sensitivity,
      difference: negative(sensitivity.difference),
      low: turned(sensitivity.high),
      high: turned(sensitivity.low),
    },
    changed: changed && [changed[1], changed[0]],
    pairing: {
      ...pairing,
      only_first: pairing.only_second,
      only_second: pairing.only_first,
      unscored: [...pairing.unscored].reverse(),
      failed: [...pairing.failed].reverse(),
    },
  };
}

function mirroredTask(task: PairTask): PairTask {
  const columns = Object.fromEntries(
    Object.entries(task.columns).map(([key, column]) => [
      key,
      {
        ...column,
        first: column.second,
        second: column.first,
        kinds: Object.fromEntries(Object.entries(column.kinds).map(([kind, count]) => [OTHER_KIND[kind] ?? kind, count])),
      },
    ]),
  );
  return { ...task, first: task.second, second: task.first, columns };
}

/** Documents of a task that several runs share, from the side of the first of them. */
export interface Documents {
  runs: RunEntry[];
  /** Index of each run's task, and the column of the scores in it. */
  tables: Table[];
  columns: string[];
  /** For each run the place of each document in its index; -1: the run does not have it. */
  places: number[][];
  /** For each run but the first the kind of each document, beside the first. */
  kinds: string[][];
  /** All scores are right or wrong; of several runs two may be so beside each other, and graded beside a third. */
  binary: boolean;
  /** Of two runs: bits; NaN where nothing changed. */
  surprise: number[];
}

/** The documents behind a row: of two runs as they are shown, of several from the side of the baseline or the first. */
export function useDocuments(summary: Summary, runs: RunEntry[], base: RunEntry | undefined, row: Difference): Loaded<Documents> {
  const anchor = base ?? runs[0];
  const wanted = runs.length === 2 ? shownPairs(runs, base) : runs.filter((run) => run !== anchor).map((run): [RunEntry, RunEntry] => [anchor as RunEntry, run]);
  const key = keyOf(row);
  return useMade(JSON.stringify([prefixed(summary, ""), wanted.map((pair) => pair.map((run) => run.number)), row.name, key]), async () =>
    readDocuments(summary, await Promise.all(wanted.map(([first, second]) => readPair(summary, first, second))), row.name, key),
  );
}

/** Reads the documents of the first run of the pairs beside those of the second ones; all pairs have the same first. */
async function readDocuments(summary: Summary, pairs: Pair[], task: string, key: string): Promise<Documents> {
  const known = pairs.flatMap((pair) => {
    const found = pair.tasks.find((one) => one.task === task && Object.hasOwn(one.columns, key));
    return found ? [{ pair, found }] : [];
  });
  const anchor = known[0];
  if (!anchor) throw new Error(`these runs share no documents of ${task}, ${key}`);
  const runs = [anchor.pair.first, ...known.map(({ pair }) => pair.second)];
  const keys = [anchor.found.first, ...known.map(({ found }) => found.second)];
  const tables = await Promise.all(runs.map((run, at) => readTable(run, run.tasks.filter((one) => one.key === keys[at]))));
  const columns = [anchor.found.columns[key]?.first ?? key, ...known.map(({ found }) => found.columns[key]?.second ?? key)];
  const pieces = await Promise.all(known.map(({ found }) => load<PairDocuments>(prefixed(summary, found.piece))));
  const rows = new Map<number, number>();
  const places: number[][] = runs.map(() => []);
  const kinds: string[][] = known.map(() => []);
  const surprise: number[] = [];
  pieces.forEach((piece, at) => {
    const one = known[at] as (typeof known)[number];
    const column = piece.columns[key];
    let changed = 0;
    for (let document = 0; document < piece.count; document++) {
      const sides = [piece.first?.[document] ?? document, piece.second?.[document] ?? document] as const;
      const [mine, theirs] = one.pair.mirrored ? [sides[1], sides[0]] : sides;
      const kind = column?.kinds[document] ?? "-";
      const bits = isChanged(kind) ? (column?.surprise[changed++] ?? NaN) : NaN;
      let row = rows.get(mine);
      if (row === undefined) {
        row = rows.size;
        rows.set(mine, row);
        places.forEach((list, run) => list.push(run === 0 ? mine : -1));
        kinds.forEach((list) => list.push(""));
        surprise.push(NaN);
      }
      (places[at + 1] as number[])[row] = theirs;
      (kinds[at] as string[])[row] = one.pair.mirrored ? (OTHER_KIND[kind] ?? kind) : kind;
      if (pieces.length === 1) surprise[row] = bits;
    }
  });
  const binary = !kinds.some((list) => list.some((kind) => kind === "=" || kind === ">" || kind === "<"));
  return { runs, tables, columns, places, kinds, surprise, binary };
}

export const isChanged = (kind: string): boolean => kind === "f" || kind === "s" || kind === ">" || kind === "<";
export const isRightOrWrong = (kinds: Kinds): boolean => ["b", "f", "s", "n"].some((kind) => kinds[kind]);

/** The runs that the address names, in the order of the report; without any the first that can be compared. */
export function chosenRuns(report: Report, summary: Summary, params: URLSearchParams): RunEntry[] {
  const named = new Set(params.getAll("run"));
  if (named.size) return report.runs.filter((run) => named.has(run.name) || run.number === summary.reference).slice(0, MOST);
  const pairs = report.compared ?? summary.pairs.filter(({ reason }) => !reason).map(({ first, second }): [number, number] => [first, second]);
  const [pair] = pairs;
  const all = new Set(pairs.flat());
  const wanted = summary.reference === null && all.size <= MOST ? all : new Set(pair);
  return report.runs.filter((run) => wanted.has(run.number));
}

/** The pairs that are shown: all others with the baseline, or all. */
export function shownPairs(runs: RunEntry[], base: RunEntry | undefined): [RunEntry, RunEntry][] {
  if (base) return runs.filter((run) => run !== base).map((run) => [run, base]);
  return runs.flatMap((first, at) => runs.slice(at + 1).map((second): [RunEntry, RunEntry] => [first, second]));
}

export function baseOf(runs: RunEntry[], summary: Summary, params: URLSearchParams): RunEntry | undefined {
  if (summary.reference !== null) return runs.find((run) => run.number === summary.reference);
  return runs.find((run) => run.name === params.get("base")) ?? (runs.length === 2 ? runs[1] : undefined);
}

export function changedParams(params: URLSearchParams, changes: Record<string, string | string[] | null>): URLSearchParams {
  const next = new URLSearchParams(params);
  for (const [name, value] of Object.entries(changes)) {
    next.delete(name);
    for (const one of Array.isArray(value) ? value : value ? [value] : []) next.append(name, one);
  }
  return next;
}
