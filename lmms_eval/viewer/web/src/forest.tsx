// The forest plot: the interval of each difference in a column of its table, on one axis for each unit.
import type { Difference } from "./pairs";
import { directionOf } from "./amounts";

const WIDTH = 190;
const MARGIN = 6;
const STEPS = [1, 2, 5, 10];

export interface Axis {
  low: number;
  high: number;
  ticks: number[];
}

/** An axis with round ends around the intervals of rows and 0. */
export function axisOf(rows: Difference[]): Axis {
  const ends = rows.flatMap((row) => [0, row.value, row.interval?.low ?? 0, row.interval?.high ?? 0]);
  const [least, most] = [Math.min(...ends), Math.max(...ends)];
  const rough = (most - least || 1) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * (STEPS.find((one) => one * power >= rough) ?? 10);
  const [first, last] = [Math.floor(least / step - 1e-9), Math.ceil(most / step + 1e-9)];
  const ticks = Array.from({ length: last - first + 1 }, (_, at) => (first + at) * step);
  return { low: first * step, high: last * step, ticks };
}

/** The interval of a row as a line; its numbers are in the same row of the table. */
export function Whisker({ row, axis }: { row: Difference; axis: Axis }) {
  const at = (value: number): number => MARGIN + ((WIDTH - 2 * MARGIN) * (value - axis.low)) / (axis.high - axis.low);
  const tone = { up: "right", down: "wrong", same: "same", open: "open" }[directionOf(row.verdict)];
  return (
    <svg class={`interval ${tone}`} aria-hidden="true" width={WIDTH} height="24">
      {axis.ticks.map((tick) => (
        <line class={Math.abs(tick) < 1e-12 ? "zero" : "tick"} x1={at(tick)} x2={at(tick)} y1="0" y2="24" />
      ))}
      {row.interval && <path d={`M${at(row.interval.low)} 8V16M${at(row.interval.low)} 12H${at(row.interval.high)}M${at(row.interval.high)} 8V16`} />}
      <circle cx={at(row.value)} cy="12" r="4" />
    </svg>
  );
}
