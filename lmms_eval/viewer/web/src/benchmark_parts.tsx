// Parts that the sections of the four benchmarks share.
import type { ComponentChildren } from "preact";

import type { Bar } from "./charts";
import { SortedTable, type Column } from "./common";
import { countColumn, fewNote, plotColumns, scoreColumn } from "./plot";
import { plain, Text } from "./text";
import type { Cell, Json, JsonObject } from "./types";

export const object = (value: Json | undefined): JsonObject =>
  value !== null && typeof value === "object" && !Array.isArray(value) ? value : {};
export const list = (value: Json | undefined): JsonObject[] => (Array.isArray(value) ? value.map(object) : []);
export const numeric = (value: Json | undefined): number | null => (typeof value === "number" ? value : null);
export const counted = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? "" : "s"}`;
export const spaced = (name: string): string => plain(name.replaceAll("_", " "));

/** A number with the ends of its interval as a list; the reason where there is none. */
export function withEnds(value: Json | undefined, ends: Json | undefined, n: Json | undefined, reason?: Json): Cell {
  const [low, high] = Array.isArray(ends) ? ends : [];
  const method = typeof reason === "string" ? reason : undefined;
  return { value: numeric(value), low: numeric(low), high: numeric(high), n: numeric(n) ?? 0, method };
}

export function Gaps({ gaps }: { gaps: Json | undefined }) {
  if (!Array.isArray(gaps) || !gaps.length) return null;
  return (
    <p class="quiet">
      No published number: <Text>{gaps.slice(0, 4).join("; ")}</Text>
      {gaps.length > 4 && ` and ${gaps.length - 4} more`}
    </p>
  );
}

interface NumbersProps {
  bars: Bar[];
  label: string;
  /** What `n` counts. */
  units?: string;
  /** A plot of the same numbers, before them, where a curve says more than bars. */
  plot?: ComponentChildren;
}

/** Numbers with their intervals, drawn in their rows. */
export function Numbers({ bars, label, units = "samples", plot }: NumbersProps) {
  const cellOf = (bar: Bar): Cell => bar;
  const columns: Column<Bar>[] = [
    { name: "Part", value: (bar) => bar.name },
    scoreColumn(bars, "Score", cellOf),
    ...(plot ? [] : plotColumns(bars, { cellOf })),
    countColumn(bars, cellOf, () => units),
  ];
  const table = <SortedTable rows={bars} columns={columns} label={label} note={fewNote(bars, units)} />;
  return plot ? (
    <div class="halves">
      {plot}
      {table}
    </div>
  ) : (
    table
  );
}

export function Choose({ names, now, choose, label }: { names: string[]; now: string; choose: (name: string) => void; label: string }) {
  if (names.length < 2) return null;
  return (
    <label class="field">
      {label}
      <select value={now} onChange={(event) => choose(event.currentTarget.value)}>
        {names.map((name) => (
          <option value={name}>{spaced(name)}</option>
        ))}
      </select>
    </label>
  );
}
