// Charts by Chart.js: histograms, lines with intervals, radar. Every number stands in a table too.
import {
  BarController,
  BarElement,
  CategoryScale,
  Chart,
  Filler,
  LinearScale,
  LineController,
  LineElement,
  PointElement,
  RadarController,
  RadialLinearScale,
  Tooltip,
  type ChartConfiguration,
  type Plugin,
} from "chart.js";
import { useEffect, useId, useRef } from "preact/hooks";

import { number, plain } from "./text";
import { useTheme } from "./theme";
import type { Cell, Histogram } from "./types";

Chart.register(BarController, BarElement, CategoryScale, Filler, LinearScale, LineController, LineElement, PointElement);
Chart.register(RadarController, RadialLinearScale, Tooltip);
Chart.defaults.animation = false;
Chart.defaults.maintainAspectRatio = false;
Chart.defaults.font.family = "system-ui, sans-serif";

export const token = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

interface WithIntervals {
  intervals?: ([number, number] | null)[];
}

/** Whiskers over bars and points, along the axis of values. */
export const whiskers: Plugin = {
  id: "whiskers",
  afterDatasetsDraw(chart) {
    const { ctx } = chart;
    const flat = chart.options.indexAxis === "y";
    chart.data.datasets.forEach((dataset, place) => {
      const scale = chart.scales[flat ? "x" : "y"];
      const intervals = (dataset as WithIntervals).intervals;
      const apart = flat ? 0 : 6; // series of a curve have their points at the same places
      if (!scale || !intervals) return;
      ctx.save();
      ctx.strokeStyle = token("--ink");
      ctx.lineWidth = 1.25;
      chart.getDatasetMeta(place).data.forEach((element, item) => {
        const interval = intervals[item];
        if (!interval) return;
        const [low, high] = interval.map((value) => scale.getPixelForValue(value)) as [number, number];
        const at = (flat ? element.y : element.x) + apart * (place - (chart.data.datasets.length - 1) / 2);
        ctx.beginPath();
        for (const [fromX, fromY, toX, toY] of [
          [low, at, high, at],
          [low, at - 3, low, at + 3],
          [high, at - 3, high, at + 3],
        ] as const) {
          if (flat) {
            ctx.moveTo(fromX, fromY);
            ctx.lineTo(toX, toY);
          } else {
            ctx.moveTo(fromY, fromX);
            ctx.lineTo(toY, toX);
          }
        }
        ctx.stroke();
      });
      ctx.restore();
    });
  },
};

interface CanvasProps {
  config: () => ChartConfiguration;
  height: number;
  label: string;
  /** The table that holds the same numbers, by its id; else the numbers, for those who cannot see the chart. */
  table?: string;
  numbers?: Numbers;
}

interface Numbers {
  head: string[];
  rows: string[][];
}

export function Canvas({ config, height, label, table, numbers }: CanvasProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();
  const id = useId();
  useEffect(() => {
    if (!canvas.current) return;
    Chart.defaults.color = token("--quiet");
    Chart.defaults.borderColor = token("--line");
    const chart = new Chart(canvas.current, config());
    return () => chart.destroy();
  }, [config, theme]);
  return (
    <>
      <div class="chart" style={{ height: `${height}px` }}>
        <canvas ref={canvas} role="img" aria-label={plain(label)} aria-details={table ?? (numbers && id)} />
      </div>
      {numbers && <Unseen id={id} numbers={numbers} />}
    </>
  );
}

const Unseen = ({ id, numbers }: { id: string; numbers: Numbers }) => (
  <div class="unseen">
    <table id={id}>
      <thead>
        <tr>
          {numbers.head.map((name) => (
            <th>{plain(name)}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {numbers.rows.map((row) => (
          <tr>
            {row.map((text) => (
              <td>{plain(text)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

/** Values of several series by label, with their intervals. */
const numbersOf = (labels: string[], series: Series[]): Numbers => ({
  head: ["", ...series.map((one) => one.name)],
  rows: labels.map((label, place) => [
    label,
    ...series.map(({ cells }) => {
      const cell = cells[place];
      const ends = cell && interval(cell);
      return cell ? `${number(cell.value)}${ends ? ` (${number(ends[0])} – ${number(ends[1])})` : ""}` : "–";
    }),
  ]),
});

export interface Bar extends Cell {
  name: string;
}

const interval = (cell: Cell): [number, number] | null =>
  cell.low !== null && cell.high !== null ? [cell.low, cell.high] : null;

/** The ends of an axis: those of the scale where it can be told, else so that all intervals lie within. */
const reach = (cells: Cell[]): { min?: number; max?: number; suggestedMin?: number; suggestedMax?: number } => {
  const values = cells.flatMap((cell) => [cell.value, cell.low, cell.high]).filter((value): value is number => value !== null);
  if (!values.length) return {};
  const low = Math.min(...values);
  const high = Math.max(...values);
  return {
    min: low >= 0 ? 0 : undefined,
    max: low >= 0 && high <= 1 ? 1 : low >= 0 && high <= 100 && high > 10 ? 100 : undefined,
    suggestedMin: low,
    suggestedMax: high,
  };
};

/** A label at a corner of a radar, which on a narrow page must leave it room. */
function shortened(text: string): string {
  const most = window.innerWidth < 640 ? 18 : 28;
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** Keeps a function while what it is made from stays the same. */
export function useStable<T>(make: () => T, from: unknown): () => T {
  const kept = useRef<{ make: () => T; from: unknown }>({ make, from });
  if (kept.current.from !== from) kept.current = { make, from };
  return kept.current.make;
}

export function HistogramChart({ histogram, unit }: { histogram: Histogram; unit: string }) {
  const { counts, edges } = histogram;
  const edge = (place: number): number => edges[place] ?? 0;
  const ends = (place: number) => `${number(edge(place), 3)} – ${number(edge(place + 1), 3)}`;
  const config = (): ChartConfiguration => ({
    type: "bar",
    data: {
      datasets: [
        {
          data: counts.map((counted, place) => ({ x: (edge(place) + edge(place + 1)) / 2, y: counted })) as never,
          backgroundColor: token("--bar"),
          barPercentage: 1,
          categoryPercentage: 0.96,
        },
      ],
    },
    options: {
      scales: {
        x: {
          type: "linear",
          min: edge(0),
          max: edge(edges.length - 1),
          offset: counts.length === 1,
          title: { display: true, text: unit },
          grid: { display: false },
          ticks: { maxTicksLimit: 6, maxRotation: 0, includeBounds: false },
        },
        y: { beginAtZero: true, ticks: { precision: 0, maxTicksLimit: 5 } },
      },
      plugins: { tooltip: { callbacks: { title: ([item]) => (item ? `${ends(item.dataIndex)} ${unit}` : "") } } },
    },
  });
  const numbers = { head: [unit, "samples"], rows: counts.map((counted, place) => [ends(place), String(counted)]) };
  return <Canvas config={useStable(config, histogram)} height={150} label={`Distribution in ${unit}`} numbers={numbers} />;
}

export interface Series {
  name: string;
  cells: (Cell | null)[];
}

const SERIES = ["--bar", "--second", "--third", "--fourth", "--fifth"];

const isEmpty = (series: Series[]): boolean => !series.some((one) => one.cells.some((cell) => cell && cell.value !== null));

export function Curve({ labels, series, label }: { labels: string[]; series: Series[]; label: string }) {
  if (isEmpty(series)) return null;
  const values = (one: Series): string => JSON.stringify(one.cells.map((cell) => cell?.value ?? null));
  const [first] = series;
  const differ = series.filter((one) => one === first || (first && values(one) !== values(first))); // no line below another
  return <Lines labels={labels} series={differ} label={label} />;
}

function Lines({ labels, series, label }: { labels: string[]; series: Series[]; label: string }) {
  const config = (): ChartConfiguration => ({
    type: "line",
    data: {
      labels: labels.map(plain),
      datasets: series.map((one, place) => ({
        label: plain(one.name),
        data: one.cells.map((cell) => cell?.value ?? null),
        borderColor: token(SERIES[place % SERIES.length] ?? "--bar"),
        backgroundColor: token(SERIES[place % SERIES.length] ?? "--bar"),
        borderWidth: 2,
        pointRadius: 3.5,
        borderDash: place === 0 ? [] : [6, 4],
        spanGaps: true,
        intervals: one.cells.map((cell) => cell && interval(cell)),
      })) as never,
    },
    options: {
      scales: { y: { ...reach(series.flatMap((one) => one.cells.filter((cell): cell is Cell => cell !== null))), ticks: { maxTicksLimit: 6 } }, x: { offset: true, grid: { display: false } } },
    },
    plugins: [whiskers],
  });
  return (
    <div>
      <Canvas config={useStable(config, series)} height={240} label={label} numbers={numbersOf(labels, series)} />
      <Legend names={series.map((one) => one.name)} />
    </div>
  );
}

const Legend = ({ names }: { names: string[] }) => (
  <p class="legend">
    {names.map((name, place) => (
      <span>
        <i class={`series${place % SERIES.length}`} aria-hidden="true" /> {plain(name)}
      </span>
    ))}
  </p>
);

export function Radar({ labels, series, label }: { labels: string[]; series: Series[]; label: string }) {
  // a radar of zeros is a point
  if (!series.some((one) => one.cells.some((cell) => cell?.value))) return null;
  return <Star labels={labels} series={series} label={label} />;
}

function Star({ labels, series, label }: { labels: string[]; series: Series[]; label: string }) {
  const config = (): ChartConfiguration => ({
    type: "radar",
    data: {
      labels: labels.map((name) => shortened(plain(name))),
      datasets: series.map((one, place) => ({
        label: plain(one.name),
        data: one.cells.map((cell) => cell?.value ?? null),
        borderColor: token(SERIES[place % SERIES.length] ?? "--bar"),
        backgroundColor: `${token(SERIES[place % SERIES.length] ?? "--bar")}33`,
        borderWidth: 2,
        pointRadius: 3,
        fill: true,
      })) as never,
    },
    options: {
      scales: {
        r: {
          beginAtZero: true,
          grid: { color: token("--line") },
          angleLines: { color: token("--line") },
          ticks: { backdropColor: "transparent", maxTicksLimit: 5 },
        },
      },
    },
  });
  return (
    <div>
      <Canvas config={useStable(config, series)} height={340} label={label} numbers={numbersOf(labels, series)} />
      <Legend names={series.map((one) => one.name)} />
    </div>
  );
}
