// The samples of all chosen tasks as a table of columns, and what filters and orders its rows.
import { load } from "./chunks";
import { Codes, Numbers, Texts, type Column } from "./columns";
import type { NamedPlaces, RunEntry, TaskEntry, TaskIndex } from "./types";

export const STATUSES = ["scored", "unscored", "failed"];

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

/** The column that rows are coloured and filtered by: the one named, else the first. */
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
  key: string;
  passes: (column: Column) => (row: number) => boolean;
}

const within = (low: number | null, high: number | null) => (column: Column) => (row: number) => {
  const value = column.at(row);
  return typeof value === "number" && (low === null || value >= low) && (high === null || value <= high);
};

const equals = (value: string) => (column: Column) =>
  column instanceof Codes ? column.is(value) : (row: number) => column.at(row) === value;

/** The filters that the address asks for; the search in texts is apart, since it has to load them. */
function filters(table: Table, params: URLSearchParams): Filter[] {
  const found: Filter[] = [];
  for (const key of ["status", "finish"]) {
    const value = params.get(key);
    if (value) found.push({ key, passes: equals(value) });
  }
  const ranges = { score: `s.${mainScore(table, params)}`, latency: "latency", tokens: "out" };
  for (const [name, key] of Object.entries(ranges)) {
    const low = bound(params, `${name}.min`);
    const high = bound(params, `${name}.max`);
    if (low !== null || high !== null) found.push({ key, passes: within(low, high) });
  }
  const answer = params.get("answer");
  if (answer) found.push({ key: "answer", passes: (column) => (row) => normal(String(column.at(row) ?? "")) === normal(answer) });
  for (const [name, value] of params)
    if (name.startsWith("m.") && table.columns.has(name) && value !== "") found.push({ key: name, passes: equals(value) });
  return found;
}

/** The columns of which all rows have to be loaded before rows can be chosen. */
export function neededColumns(table: Table, params: URLSearchParams): string[] {
  const by = params.get("sort");
  const needed = filters(table, params).map((filter) => filter.key);
  if (by !== null && by !== "task" && table.columns.has(by)) needed.push(by);
  return [...new Set(needed)];
}

export function chosen(table: Table, params: URLSearchParams, matches: Set<number> | null): number[] {
  const tests = filters(table, params).map(({ key, passes }) => {
    const column = table.columns.get(key);
    return column ? passes(column) : () => false;
  });
  const rows: number[] = [];
  for (let row = 0; row < table.count; row++)
    if ((matches === null || matches.has(row)) && tests.every((test) => test(row))) rows.push(row);
  return sorted(table, params, rows);
}

function sorted(table: Table, params: URLSearchParams, rows: number[]): number[] {
  const by = params.get("sort");
  const ranks = by === "task" ? Float64Array.from({ length: table.count }, (_, row) => table.task(row)) : table.columns.get(by ?? "")?.ranks();
  if (!ranks) return rows;
  const sign = params.get("down") === null ? 1 : -1;
  return rows.sort((a, b) => {
    const one = ranks[a] ?? NaN;
    const other = ranks[b] ?? NaN;
    if (Number.isNaN(one) || Number.isNaN(other)) return Number(Number.isNaN(one)) - Number(Number.isNaN(other)) || a - b; // what is absent comes last either way
    return sign * (one - other) || a - b;
  });
}
