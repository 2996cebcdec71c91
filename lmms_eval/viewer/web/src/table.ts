// The index of samples as columns over all chosen tasks, and what filters and orders them.
import { load } from "./chunks";
import { compare } from "./common";
import type { IndexPart, RunEntry, TaskEntry } from "./types";

export const STATUSES = ["scored", "unscored", "failed"];

export interface Table {
  run: RunEntry;
  tasks: TaskEntry[];
  count: number;
  /** For each sample its task (place in `tasks`) and its place within it. */
  task: number[];
  place: number[];
  id: string[];
  status: number[];
  finish: string[];
  reason: string[];
  latency: (number | null)[];
  in: (number | null)[];
  out: (number | null)[];
  answer: string[];
  target: string[];
  thumb: string[];
  scores: Map<string, (number | null)[]>;
  metadata: Map<string, (string | null)[]>;
}

export async function readTable(run: RunEntry, tasks: TaskEntry[]): Promise<Table> {
  const table: Table = {
    run, tasks, count: 0, task: [], place: [], id: [], status: [], finish: [], reason: [], latency: [], in: [], out: [],
    answer: [], target: [], thumb: [], scores: new Map(), metadata: new Map(),
  };
  const names = tasks.flatMap((task, number) =>
    Array.from({ length: task.index_parts }, (_, part) => ({ number, name: `index-${task.key}-${part}`, first: part * task.per_index })),
  );
  const parts = await Promise.all(names.map(({ name }) => load<IndexPart>(name)));
  parts.forEach((part, at) => append(table, part, names[at]?.number ?? 0, names[at]?.first ?? 0));
  return table;
}

function append(table: Table, part: IndexPart, task: number, first: number): void {
  const before = table.count;
  for (let row = 0; row < part.count; row++) {
    table.task.push(task);
    table.place.push(first + row);
    table.id.push(part.id[row] ?? "");
    table.status.push(part.status[row] ?? 0);
    table.finish.push(part.finish.values[part.finish.codes[row] ?? -1] ?? "");
    table.reason.push(part.reason.values[part.reason.codes[row] ?? -1] ?? "");
    table.latency.push(part.latency[row] ?? null);
    table.in.push(part.in[row] ?? null);
    table.out.push(part.out[row] ?? null);
    table.answer.push(part.answer[row] ?? "");
    table.target.push(part.target[row] ?? "");
    table.thumb.push(part.thumb[row] ?? "");
  }
  table.count += part.count;
  for (const [name, values] of Object.entries(part.scores)) join(table.scores, name, before, values);
  for (const [name, coded] of Object.entries(part.metadata))
    join(table.metadata, name, before, coded.codes.map((code) => coded.values[code] ?? null));
  for (const column of [...table.scores.values(), ...table.metadata.values()])
    while (column.length < table.count) column.push(null);
}

function join<T>(columns: Map<string, (T | null)[]>, name: string, before: number, values: (T | null)[]): void {
  const column = columns.get(name) ?? [];
  while (column.length < before) column.push(null);
  for (const value of values) column.push(value);
  columns.set(name, column);
}

/** The column that rows are coloured and filtered by: the one named, else the first that most samples have. */
export function mainScore(table: Table, params: URLSearchParams): string {
  const named = params.get("metric");
  return named !== null && table.scores.has(named) ? named : ([...table.scores.keys()][0] ?? "");
}

const bound = (params: URLSearchParams, name: string): number | null => {
  const text = params.get(name);
  return text === null || text === "" || Number.isNaN(Number(text)) ? null : Number(text);
};

type Test = (row: number) => boolean;

function within(column: (number | null)[], low: number | null, high: number | null): Test {
  return (row) => {
    const value = column[row] ?? null;
    return value !== null && (low === null || value >= low) && (high === null || value <= high);
  };
}

const normal = (text: string): string => text.trim().toLowerCase();

/** The tests that the address asks for; the search in texts is apart, since it has to load them. */
export function tests(table: Table, params: URLSearchParams): Test[] {
  const found: Test[] = [];
  const status = params.get("status");
  if (status) found.push((row) => STATUSES[table.status[row] ?? 0] === status);
  const finish = params.get("finish");
  if (finish !== null && finish !== "") found.push((row) => table.finish[row] === finish);
  const ranges: [string, (number | null)[]][] = [
    ["score", table.scores.get(mainScore(table, params)) ?? []],
    ["latency", table.latency],
    ["tokens", table.out],
  ];
  for (const [name, column] of ranges) {
    const low = bound(params, `${name}.min`);
    const high = bound(params, `${name}.max`);
    if (low !== null || high !== null) found.push(within(column, low, high));
  }
  const answer = params.get("answer");
  if (answer) found.push((row) => normal(table.answer[row] ?? "") === normal(answer));
  for (const [name, value] of params) {
    const column = name.startsWith("m.") ? table.metadata.get(name.slice(2)) : undefined;
    if (column && value !== "") found.push((row) => column[row] === value);
  }
  return found;
}

export function chosen(table: Table, params: URLSearchParams, matches: Set<number> | null): number[] {
  const all = tests(table, params);
  const rows: number[] = [];
  for (let row = 0; row < table.count; row++)
    if ((matches === null || matches.has(row)) && all.every((test) => test(row))) rows.push(row);
  return sorted(table, params, rows);
}

function sorted(table: Table, params: URLSearchParams, rows: number[]): number[] {
  const by = params.get("sort");
  const column = by === null ? undefined : columnOf(table, by);
  if (!column) return rows;
  const down = params.get("down") !== null;
  return rows.sort((a, b) => compare(column[a] ?? null, column[b] ?? null, down) || a - b);
}

export function columnOf(table: Table, name: string): (string | number | null)[] | undefined {
  if (name.startsWith("m.")) return table.metadata.get(name.slice(2));
  if (name.startsWith("s.")) return table.scores.get(name.slice(2));
  const plain: Record<string, (string | number | null)[]> = {
    id: table.id, task: table.task, status: table.status, finish: table.finish, reason: table.reason,
    latency: table.latency, in: table.in, out: table.out, answer: table.answer, target: table.target,
  };
  return Object.hasOwn(plain, name) ? plain[name] : undefined;
}
