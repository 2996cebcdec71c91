// The forest plot: every difference with its interval, by unit. The same numbers stand in the table beside it.
import type { ChartConfiguration } from "chart.js";

import { cut, sized } from "./amounts";
import { Canvas, token, useStable, whiskers } from "./charts";
import type { Difference, Verdict } from "./pairs";
import { plain } from "./text";

export interface ForestRow {
  /** Task and metric, or the runs. */
  lines: string[];
  row: Difference;
}

const MOST = 60;
const COLOURS: Record<Verdict, string> = {
  better: "--right",
  worse: "--wrong",
  equivalent: "--bar",
  "ahead on this list": "--right",
  "behind on this list": "--wrong",
  "equivalent on this list": "--bar",
  "cannot tell": "--quiet",
};

export function Forests({ rows }: { rows: ForestRow[] }) {
  const units = [...new Set(rows.map(({ row }) => unitOf(row)))];
  return (
    <>
      {units.map((unit) => (
        <Forest key={unit} rows={rows.filter(({ row }) => unitOf(row) === unit)} unit={unit} />
      ))}
    </>
  );
}

const unitOf = (row: Difference): string => (row.unit === "percent" ? "percent points" : `units of ${row.metric}`);

const withInterval = (row: Difference): string =>
  `${sized(row, row.value)} ${row.interval ? `[${sized(row, row.interval.low)}, ${sized(row, row.interval.high)}]` : ""}`;

function Forest({ rows, unit }: { rows: ForestRow[]; unit: string }) {
  const shown = rows.slice(0, MOST);
  const factor = unit === "percent points" ? 100 : 1;
  const ends = shown.flatMap(({ row }) => [0, row.value, row.interval?.low ?? 0, row.interval?.high ?? 0]).map((end) => end * factor);
  const config = (): ChartConfiguration => ({
    type: "line",
    data: {
      labels: shown.map(({ lines }) => lines.map((line) => cut(plain(line), window.innerWidth < 640 ? 18 : 24))),
      datasets: [
        {
          data: shown.map(({ row }) => row.value * factor),
          showLine: false,
          pointRadius: 5,
          pointBorderWidth: 2,
          pointBorderColor: shown.map(({ row }) => token(COLOURS[row.verdict])),
          pointBackgroundColor: shown.map(({ row }) => token(row.verdict === "cannot tell" ? "--ground" : COLOURS[row.verdict])),
          intervals: shown.map(({ row }) => row.interval && [row.interval.low * factor, row.interval.high * factor]),
        } as never,
      ],
    },
    options: {
      indexAxis: "y",
      scales: {
        x: {
          suggestedMin: Math.min(...ends),
          suggestedMax: Math.max(...ends),
          grid: { color: (tick) => token(tick.tick.value === 0 ? "--quiet" : "--line") },
          title: { display: true, text: `difference in ${plain(unit)}` },
        },
        y: { offset: true, grid: { display: false }, ticks: { autoSkip: false } },
      },
      plugins: {
        tooltip: {
          callbacks: {
            label: (item) => {
              const row = shown[item.dataIndex]?.row;
              return row ? withInterval(row) : "";
            },
          },
        },
      },
    },
    plugins: [whiskers],
  });
  return (
    <>
      <Canvas
        config={useStable(config, rows.map(({ lines }) => lines.join()).join())}
        height={64 + 40 * shown.length}
        label={`Forest plot, ${unit}`}
        numbers={{ head: ["", `difference in ${unit}`], rows: shown.map(({ lines, row }) => [lines.join(", "), withInterval(row)]) }}
      />
      {rows.length > MOST && <p class="quiet">The plot shows the first {MOST} of {rows.length}.</p>}
    </>
  );
}
