// The samples of all chosen tasks as a table of columns, and what filters and orders its rows.
import { load } from "./chunks";
import { Codes, Numbers, Texts, type Column } from "./columns";
import type { ColumnFacts, NamedPlaces, RunEntry, TaskEntry, TaskIndex, Verdict } from "./types";

export const STATUSES = ["scored", "unscored", "failed"];
/** In the order of filters: what one looks for comes first. */
export const VERDICTS: Verdict[] = ["wrong", "partly", "correct", "unscored", "failed"];
const SLACK = 1e-9;

export class Table {
  readonly count: number;
  readonly columns = new Map<string, Column>();
  /** The first row of each task. */
  private readonly firsts: number[] = [];

  /** `key` changes where rows become others; while a run goes on they only become more. */
  constructor(readonly run: RunEntry, readonly tasks: TaskEntry[], private readonly indices: TaskIndex[], readonly key: string) {
    let count = 0;
    for (const index of indices) {
      this.firsts.push(count);
      count += index.count;
    }
    this.count = count;
    indices.forEach((index, task) =>
      index.columns.forEach((facts, number) => {
        const column = this.columns.get(facts.key) ?? new { texts: Texts, numbers: Numbers, codes: Codes }[facts.kind](facts.key, count);
        column.add(tasks[task]?.key ?? "", this.firsts[task] ?? 0, index, number);
        this.columns.set(facts.key, column);
      }),
    );
  }

  /** The task of a row, as its place in `tasks`. */
  task(row: number): number {
    let low = 0;
    let high = this.firsts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.firsts[middle] ?? 0) <= row) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** The place of a row among the samples of its task. */
  place = (row: number): number => row - (this.firsts[this.task(row)] ?? 0);

  at = (key: string, row: number): string | number | null => this.columns.get(key)?.at(row) ?? null;
  text = (key: string, row: number): string => String(this.at(key, row) ?? "");

  number(key: string, row: number): number | null {
    const value = this.at(key, row);
    return typeof value === "number" ? value : null;
  }

  status = (row: number): number => Math.max(0, STATUSES.indexOf(this.text("status", row)));

  /** What the index states about a column of a task, by the task's place in `tasks`. */
  facts = (task: number, key: string): ColumnFacts | undefined => this.indices[task]?.columns.find((one) => one.key === key);

  /** The columns of a task with the scores of metrics. */
  scores = (task: number): string[] => (this.indices[task]?.columns ?? []).map((one) => one.key).filter((key) => key.startsWith("s."));

  /** Names of the metrics, or of the metadata. */
  names = (prefix: "s." | "m."): string[] => [...this.columns.keys()].filter((key) => key.startsWith(prefix)).map((key) => key.slice(2));

  /** Loads what is loaded in an earlier table of the same rows, so that nothing in sight vanishes. */
  loadAsIn = async (earlier: Table): Promise<void> => {
    await Promise.all(
      [...earlier.columns].map(async ([key, before]) => {
        const column = this.columns.get(key);
        if (!column) return;
        const moved = (row: number) => (this.firsts[earlier.task(row)] ?? 0) + earlier.place(row);
        await column.load(before.loaded().map(moved));
        if (column instanceof Codes && before instanceof Codes && before.hasValues) await column.loadValues();
      }),
    );
  };

  /** The row of a sample of the only task; -1 where there is none. */
  async row(id: string): Promise<number> {
    const index = this.indices[0];
    const facts = index?.columns.find((one) => one.key === "id");
    if (!index || !facts || facts.empty) return -1;
    if (facts.all) return (facts.all as string[]).indexOf(id);
    if (facts.from !== undefined) {
      const row = Number(id) - facts.from;
      return String(row + facts.from) === id && row >= 0 && row < index.count ? row : -1;
    }
    const piece = (index.names ?? []).filter((first) => first <= id).length - 1;
    if (piece < 0) return -1;
    const { ids, places } = await load<NamedPlaces>(`names-${this.tasks[0]?.key}-${piece}`);
    return places[ids.indexOf(id)] ?? -1;
  }
}

export async function readTable(run: RunEntry, tasks: TaskEntry[], key = `${run.number}/${tasks.map((task) => task.key).join()}`): Promise<Table> {
  return new Table(run, tasks, await Promise.all(tasks.map((task) => load<TaskIndex>(`index-${task.key}`))), key);
}

/** The scores by which samples are judged: those of the metric that the address names, else of the first of each task. */
export class Headline {
  /** The columns, each once. */
  readonly columns: string[];
  private readonly keys: string[];
  private readonly ends: (ColumnFacts["ends"] | undefined)[];

  constructor(private readonly table: Table, params: URLSearchParams) {
    const named = params.get("metric");
    this.keys = table.tasks.map((_, task) => {
      const scores = table.scores(task);
      return (named !== null && scores.includes(`s.${named}`) ? `s.${named}` : scores[0]) ?? "";
    });
    this.ends = this.keys.map((key, task) => table.facts(task, key)?.ends);
    this.columns = [...new Set(this.keys.filter(Boolean))];
  }

  key = (row: number): string => this.keys[this.table.task(row)] ?? "";
  at = (row: number): number | null => this.table.number(this.key(row), row);
  endsOf = (row: number): ColumnFacts["ends"] => this.ends[this.table.task(row)];

  /** The verdict on a row whose status and score are loaded; none for a score whose ends are not known. */
  verdict = (row: number): Verdict | null => {
    const status = this.table.text("status", row);
    if (status === "failed" || status === "unscored") return status;
    return verdictOf(this.at(row), this.endsOf(row));
  };

  /** Decimal places with which the scores of all tasks can be read, so that their points stand in one line. */
  decimals = (): number => Math.max(0, ...this.keys.map((key, task) => this.table.facts(task, key)?.decimals ?? 0));

  /** Samples by verdict, over all tasks. */
  counts(): Map<Verdict, number> {
    const found = new Map<Verdict, number>();
    this.keys.forEach((key, task) => {
      for (const column of ["status", key])
        for (const [verdict, samples] of Object.entries(this.table.facts(task, column)?.verdicts ?? {}))
          found.set(verdict as Verdict, (found.get(verdict as Verdict) ?? 0) + samples);
    });
    return found;
  }
}

/** As `verdict_of` of lmms_eval/viewer/samples.py. */
export function verdictOf(score: number | null, ends: ColumnFacts["ends"]): Verdict | null {
  if (score === null || !ends) return null;
  const [worst, best] = ends;
  const slack = SLACK * Math.max(1, Math.abs(best));
  if (Math.abs(score - best) <= slack) return "correct";
  return worst !== null && Math.abs(score - worst) <= slack ? "wrong" : "partly";
}

/** The metric by which rows are judged in a list: the one named, else the first. */
export function mainScore(table: Table, params: URLSearchParams): string {
  const named = params.get("metric");
  return named !== null && table.columns.has(`s.${named}`) ? named : (table.names("s.")[0] ?? "");
}

const bound = (params: URLSearchParams, name: string): number | null => {
  const text = params.get(name);
  return text === null || text === "" || Number.isNaN(Number(text)) ? null : Number(text);
};

const normal = (text: string): string => text.trim().toLowerCase();

interface Filter {
  /** Columns of which all rows have to be loaded. */
  keys: string[];
  /** Made when they are. */
  test: () => (row: number) => boolean;
}

const within = (low: number | null, high: number | null, at: (row: number) => unknown) => () => (row: number) => {
  const value = at(row);
  return typeof value === "number" && (low === null || value >= low) && (high === null || value <= high);
};

function equals(column: Column | undefined, value: string): (row: number) => boolean {
  if (column instanceof Codes) return column.is(value);
  return (row) => column?.at(row) === value;
}

/** The filters that the address asks for; the search in texts is apart, since it has to load them. */
function filters(table: Table, params: URLSearchParams): Filter[] {
  const found: Filter[] = [];
  const headline = new Headline(table, params);
  const verdict = params.get("verdict");
  if (verdict) found.push({ keys: ["status", ...headline.columns], test: () => (row) => headline.verdict(row) === verdict });
  for (const key of ["status", "finish"]) {
    const value = params.get(key);
    if (value) found.push({ keys: [key], test: () => equals(table.columns.get(key), value) });
  }
  const ranges: [string, string[], (row: number) => unknown][] = [
    ["score", headline.columns, headline.at],
    ["latency", ["latency"], (row) => table.at("latency", row)],
    ["tokens", ["out"], (row) => table.at("out", row)],
  ];
  for (const [name, keys, at] of ranges) {
    const low = bound(params, `${name}.min`);
    const high = bound(params, `${name}.max`);
    if (low !== null || high !== null) found.push({ keys, test: within(low, high, at) });
  }
  const answer = params.get("answer");
  if (answer) found.push({ keys: ["answer"], test: () => (row) => normal(table.text("answer", row)) === normal(answer) });
  for (const [name, value] of params)
    if (name.startsWith("m.") && table.columns.has(name) && value !== "") found.push({ keys: [name], test: () => equals(table.columns.get(name), value) });
  return found;
}

/** The columns of which all rows have to be loaded before rows can be chosen. */
export function neededColumns(table: Table, params: URLSearchParams): string[] {
  const by = params.get("sort");
  const needed = filters(table, params).flatMap((filter) => filter.keys);
  if (by === "score" || by === "verdict") needed.push("status", ...new Headline(table, params).columns);
  else if (by !== null && by !== "task" && table.columns.has(by)) needed.push(by);
  return [...new Set(needed)];
}

export function chosen(table: Table, params: URLSearchParams, matches: Set<number> | null): number[] {
  const tests = filters(table, params).map(({ test }) => test());
  const rows: number[] = [];
  for (let row = 0; row < table.count; row++)
    if ((matches === null || matches.has(row)) && tests.every((test) => test(row))) rows.push(row);
  return sorted(table, params, rows);
}

function ranksOf(table: Table, params: URLSearchParams): ArrayLike<number> | undefined {
  const by = params.get("sort") ?? "";
  const headline = new Headline(table, params);
  const made: Record<string, (row: number) => number> = {
    task: table.task.bind(table),
    score: (row) => headline.at(row) ?? NaN,
    verdict: (row) => (headline.verdict(row) === null ? NaN : VERDICTS.indexOf(headline.verdict(row) as Verdict)),
  };
  const rank = Object.hasOwn(made, by) ? made[by] : undefined;
  return rank ? Float64Array.from({ length: table.count }, (_, row) => rank(row)) : table.columns.get(by)?.ranks();
}

function sorted(table: Table, params: URLSearchParams, rows: number[]): number[] {
  const ranks = ranksOf(table, params);
  if (!ranks) return rows;
  const sign = params.get("down") === null ? 1 : -1;
  return rows.sort((a, b) => {
    const one = ranks[a] ?? NaN;
    const other = ranks[b] ?? NaN;
    if (Number.isNaN(one) || Number.isNaN(other)) return Number(Number.isNaN(one)) - Number(Number.isNaN(other)) || a - b; // what is absent comes last either way
    return sign * (one - other) || a - b;
  });
}
