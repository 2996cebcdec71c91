// Columns of tables with scores: the number in one format, a bar with its interval on one axis for all rows, and what it rests on.
import type { ComponentChildren } from "preact";

import { isFew } from "./amounts";
import { Score, type Column } from "./common";
import { capital, count, digitsOf, number } from "./text";
import type { Cell } from "./types";

export interface Axis {
  low: number;
  high: number;
  ticks: number[];
}

const STEPS = [1, 2, 2.5, 5, 10];

/** Round numbers from below the least to above the greatest, three to six of them. */
function roundTicks(low: number, high: number): number[] {
  const rough = (high - low || Math.abs(high) || 1) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * (STEPS.find((one) => one * power >= rough * 0.999) ?? 10);
  const first = Math.floor(low / step + 1e-9);
  const last = Math.max(first + 1, Math.ceil(high / step - 1e-9));
  return Array.from({ length: last - first + 1 }, (_, place) => Number(((first + place) * step).toPrecision(12)));
}

/** The whole scale if it is one of shares or percent, else as far as values and intervals reach. */
export function axisOf(cells: Cell[], isDifference = false): Axis {
  const ends = cells.flatMap((cell) => [cell.value, cell.low, cell.high]).filter((end): end is number => end !== null);
  const [low, high] = [Math.min(0, ...ends), Math.max(isDifference ? 0 : -Infinity, ...ends)];
  if (!ends.length || (!isDifference && low === 0 && high <= 1)) return { low: 0, high: 1, ticks: [0, 0.5, 1] };
  if (!isDifference && low === 0 && high > 10 && high <= 100) return { low: 0, high: 100, ticks: [0, 50, 100] };
  const ticks = roundTicks(low, high);
  return { low: ticks[0] ?? 0, high: ticks[ticks.length - 1] ?? 1, ticks };
}

const HEIGHT = 16;

/** The row's own numbers stand beside it, so nobody needs to read the drawing. */
export function Plot({ cell, axis, isDifference = false, tone = "" }: { cell: Cell; axis: Axis; isDifference?: boolean; tone?: string }) {
  if (cell.value === null && cell.low === null) return null;
  const at = (value: number): number => (100 * (Math.max(axis.low, Math.min(axis.high, value)) - axis.low)) / (axis.high - axis.low);
  const zero = at(0);
  const middle = HEIGHT / 2;
  return (
    <svg class={`plot ${isFew(cell) ? "few" : ""} ${tone}`} aria-hidden="true" viewBox={`0 0 100 ${HEIGHT}`} preserveAspectRatio="none">
      {axis.ticks.map((tick) => (
        <path class={tick === 0 && isDifference ? "zero" : "grid"} d={`M${at(tick)} 0V${HEIGHT}`} />
      ))}
      {cell.value !== null && !isDifference && (
        <rect x={Math.min(zero, at(cell.value))} width={Math.abs(at(cell.value) - zero)} y="4" height="8" />
      )}
      {cell.low !== null && cell.high !== null && (
        <path class="ends" d={`M${at(cell.low)} 5V11M${at(cell.high)} 5V11M${at(cell.low)} ${middle}H${at(cell.high)}`} />
      )}
      {cell.value !== null && isDifference && <path class="point" d={`M${at(cell.value)} ${middle}h0`} />}
    </svg>
  );
}

/** The ends of the axis above the drawings, and zero where it lies between them. */
const Ticks = ({ axis }: { axis: Axis }) => {
  const shown = axis.ticks.filter((tick) => tick === axis.low || tick === axis.high || (axis.ticks.length === 3) || tick === 0);
  return (
    <span class="ticks" aria-hidden="true">
      {shown.map((tick) => (
        <span style={{ left: `${(100 * (tick - axis.low)) / (axis.high - axis.low)}%` }}>{number(tick).replace(/(\.\d*?)0+$/, "$1")}</span>
      ))}
    </span>
  );
};

interface PlotOptions<T> {
  cellOf: (row: T) => Cell;
  /** Rows on the same scale; of several scales each row's bar is over its own, and no ticks are shown. */
  scaleOf?: (row: T) => string;
  isDifference?: boolean;
  /** The colour of a row's drawing, as a class; the row says the same in words. */
  toneOf?: (row: T) => string;
}

/** The column of drawings of a table; nothing if there is nothing to draw. */
export function plotColumns<T>(rows: T[], { cellOf, scaleOf = () => "", isDifference = false, toneOf }: PlotOptions<T>): Column<T>[] {
  const isDrawn = (cell: Cell): boolean => cell.value !== null && (!isDifference || cell.value !== 0 || cell.low !== null);
  if (!rows.some((row) => isDrawn(cellOf(row)))) return [];
  const axes = new Map<string, Axis>();
  for (const scale of new Set(rows.map(scaleOf))) axes.set(scale, axisOf(rows.filter((row) => scaleOf(row) === scale).map(cellOf), isDifference));
  const [first] = axes.values();
  const alike = first && [...axes.values()].every((axis) => axis.low === first.low && axis.high === first.high);
  return [
    {
      name: "",
      title: "The numbers and their intervals",
      class: "plotted",
      head: alike ? <Ticks axis={first} /> : <span class="unseen">Plot</span>,
      value: () => null,
      cell: (row) => <Plot cell={cellOf(row)} axis={axes.get(scaleOf(row)) ?? axisOf([])} isDifference={isDifference} tone={toneOf?.(row)} />,
    },
  ];
}

interface ScoreOptions<T> {
  more?: (row: T) => ComponentChildren;
  /** Rows on the same scale. The format is the one that the scale with the smallest numbers needs. */
  formatOf?: (row: T) => string;
}

/** The scores of all rows in one format. */
export function scoreColumn<T>(rows: T[], name: string, cellOf: (row: T) => Cell, { more, formatOf = () => "" }: ScoreOptions<T> = {}): Column<T> {
  const scales = [...new Set(rows.map(formatOf))];
  const digits = scales.map((scale) => digitsOf(rows.filter((row) => formatOf(row) === scale).map(cellOf).flatMap((cell) => [cell.value, cell.low, cell.high])));
  const shown = (value: number): string => value.toFixed(Math.max(0, ...digits));
  return {
    name,
    title: "With its 95 % interval",
    class: "number scored",
    value: (row) => cellOf(row).value,
    cell: (row) => (
      <>
        <Score cell={cellOf(row)} shown={shown} />
        {more?.(row)}
      </>
    ),
  };
}

/** The mark of a number over few things; it takes its room in every row, so that numbers stay below each other. */
export const Few = (cell: { n: number; few?: boolean }) => (
  <span class="few-mark" title={isFew(cell) ? FEW_NOTE : undefined}>
    {isFew(cell) ? "*" : ""}
  </span>
);

/** How many things the scores rest on; few are marked. Things of one kind are named in the heading, of several in each row. */
export function countColumn<T>(rows: T[], cellOf: (row: T) => Cell, unitOf: (row: T) => string): Column<T> {
  const [first = "documents", ...others] = new Set(rows.map(unitOf));
  return {
    name: others.length ? "Over" : capital(first),
    title: "What the number and its interval are over",
    class: "number counted",
    value: (row) => cellOf(row).n,
    cell: (row) => (
      <>
        {count(cellOf(row).n)}
        <Few {...cellOf(row)} />
        {others.length > 0 && <small class="unit">{unitOf(row)}</small>}
      </>
    ),
  };
}

const FEW_NOTE = "fewer than 30";

/** The legend of the mark, if a row has it. */
export const fewNote = (cells: Cell[], unit = "documents or clusters"): string | undefined =>
  cells.some(isFew) ? `* ${FEW_NOTE} ${unit}` : undefined;
