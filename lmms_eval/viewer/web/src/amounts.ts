// Numbers of a comparison as texts.
import type { Difference, OverPrompts } from "./pairs";
import { number } from "./text";

export const metricOf = (row: Difference | OverPrompts): string => row.metric + (row.filter === "none" || !row.filter ? "" : `,${row.filter}`);
export const labelOf = (row: Difference): string => `${row.name} ${metricOf(row)}`;
export const percent = (level: number): string => `${Math.round(1000 * level) / 10} %`;

/** What the interval of a difference is about, in plain words; empty without one. */
export const aboutOf = (row: Difference): string =>
  row.estimand === null ? "" : row.estimand === "benchmark accuracy" ? "this list" : "questions like these";

/** A text without its middle where it is long: names of tasks and runs often begin alike. */
export const cut = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, Math.floor(most / 4))}…${text.slice(text.length - (most - Math.floor(most / 4) - 1))}` : text;

/** A number in the units of a row's scores, shares in percent. */
export const share = (row: Difference, value: number): string => (row.unit === "percent" ? `${(100 * value).toFixed(2)} %` : number(value));

/** A difference in percent points, or in the units of the scores; with its sign. */
export function sized(row: Difference | OverPrompts, value: number): string {
  const size = row.unit === "percent" ? (100 * Math.abs(value)).toFixed(2) : number(Math.abs(value));
  return `${value > 0 ? "+" : value < 0 ? "−" : ""}${size}`;
}

export const probability = (p: number | null): string => (p === null ? "–" : p < 1e-4 ? "<0.0001" : p.toFixed(4));

const FEW = 30; // as lmms_eval/results/cells.py
/** Numbers that rest on few documents are marked. */
export const isFew = (cell: { n: number; few?: boolean }): boolean => cell.few ?? cell.n < FEW;
