// Search in prompts, answers and references: piece by piece over the texts, in the order of the samples.
import { load } from "./chunks";
import type { Table } from "./table";
import { told } from "./text";
import type { Sample } from "./types";

const SEARCHED = ["input", "target", "filtered_resps", "resps", "raw_resps", "thoughts", "blank", "judge", "error", "reason"];
const TELL_MS = 100;

export const textOf = (sample: Sample): string =>
  sample.lines.flatMap((line) => SEARCHED.map((key) => told(line[key]))).join("\n").toLowerCase();

export interface Progress {
  done: number;
  /** Grows while the search goes on. */
  matches: Set<number>;
}

/** Yields now and then, and at the end; ends early when the caller stops asking. */
export async function* search(table: Table, query: string): AsyncGenerator<Progress> {
  const wanted = query.toLowerCase();
  const matches = new Set<number>();
  let row = 0;
  let told = 0;
  while (row < table.count) {
    const task = table.tasks[table.task(row)];
    if (!task) return;
    const samples = await load<Sample[]>(`text-${task.key}-${Math.floor(table.place(row) / task.per_text)}`);
    samples.forEach((sample, at) => textOf(sample).includes(wanted) && matches.add(row + at));
    row += samples.length;
    if (row < table.count && performance.now() - told < TELL_MS) continue;
    yield { done: row, matches };
    told = performance.now();
  }
}
