// Numbers of a comparison as texts.
import type { Difference, OverPrompts, Verdict } from "./pairs";
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

/** A difference in percentage points, or in the units of the scores; with its sign. */
export function sized(row: Difference | OverPrompts, value: number): string {
  const size = row.unit === "percent" ? (100 * Math.abs(value)).toFixed(2) : number(Math.abs(value));
  return `${value > 0 ? "+" : value < 0 ? "−" : ""}${size}`;
}

/** A difference with its unit. */
export const withUnit = (row: Difference, value: number): string => `${sized(row, value)}${row.unit === "percent" ? " pp" : ""}`;

/** The size of a difference with its unit, without a sign. */
export const sizeOf = (row: Difference, value: number): string => withUnit(row, Math.abs(value)).replace("+", "");

/** Where a verdict sees the first run. */
export function directionOf(verdict: Verdict): "up" | "down" | "same" | "open" {
  if (verdict === "better" || verdict === "ahead on this list") return "up";
  if (verdict === "worse" || verdict === "behind on this list") return "down";
  return verdict === "cannot tell" ? "open" : "same";
}

/** A verdict's sign, which says the same as its colour and its word. */
export const SIGNS = { up: "▲", down: "▼", same: "=", open: "○" };

export const probability = (p: number | null): string => (p === null ? "–" : p < 1e-4 ? "<0.0001" : p.toFixed(4));

const FEW = 30; // as lmms_eval/results/cells.py
/** Numbers that rest on few documents are marked. */
export const isFew = (cell: { n: number; few?: boolean }): boolean => cell.few ?? cell.n < FEW;
