// Differences of a comparison: a table with a forest plot in it, and all that is known of one of them.
import { useEffect, useRef } from "preact/hooks";

import { SortedTable, type Column } from "./common";
import { aboutOf, directionOf, labelOf, metricOf, percent, probability, share, SIGNS, sized, sizeOf, withUnit } from "./amounts";
import { Letter, Parted, useNames } from "./name";
import { changedParams, keyOf, kindsOfRow, DEPENDS, type Difference, type Pair, type Summary } from "./pairs";
import { plotColumns } from "./plot";
import { pageAddress } from "./route";
import { count, plain, Text } from "./text";
import type { Cell } from "./types";

export interface Shown {
  pair: Pair;
  row: Difference;
}

interface DifferencesProps {
  summary: Summary;
  /** Differences of one number of several pairs, or of all numbers of one pair. */
  rows: Shown[];
  several: boolean;
  chosen: Difference | undefined;
  params: URLSearchParams;
}

export function Differences({ summary, rows, several, chosen, params }: DifferencesProps) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const found = box.current?.querySelector<HTMLElement>("tr.chosen");
    const around = found?.closest(".scroll");
    if (found && around && found.offsetTop > around.scrollTop + around.clientHeight - found.offsetHeight) around.scrollTop = found.offsetTop - 80;
  }, [chosen]);
  const isChosen = ({ row }: Shown): boolean => !several && chosen !== undefined && row.name === chosen.name && keyOf(row) === keyOf(chosen);
  const number = several ? [] : [numberColumn(params)];
  return (
    <>
      <p class="quiet">
        First − second, with {percent(1 - summary.alpha)} intervals{rows.some(({ row }) => row.interval) && ` about ${estimands(rows)}`}; a verdict describes the first run.
      </p>
      <div class="forest" ref={box}>
        <SortedTable
          rows={rows}
          columns={[...number, ...numberColumns(rows, several, "all differences of this report")]}
          label="Differences"
          rowClass={(one) => (isChosen(one) ? "chosen" : "")}
        />
      </div>
    </>
  );
}

/** What the intervals are about, each kind once. */
const estimands = (rows: Shown[]): string => [...new Set(rows.map(({ row }) => aboutOf(row)).filter(Boolean))].join(", or ");

/** Columns of every table of differences, behind the name of what differs. */
export function numberColumns(rows: Shown[], several: boolean, correctedOver: string): Column<Shown>[] {
  const pair: Column<Shown> = {
    name: "Pair",
    value: ({ pair: { first, second } }) => `${first.name} − ${second.name}`,
    cell: ({ pair }) => <PairName pair={pair} />,
  };
  return [
    ...(several ? [pair] : []),
    {
      name: "Difference",
      title: "With its interval, and what that is about",
      class: "number",
      value: ({ row }) => row.value,
      cell: ({ row }) => <Size row={row} />,
    },
    { name: "Verdict", title: "Describes the first run", value: ({ row }) => row.verdict, cell: ({ row }) => <Verdict row={row} /> },
    ...plotColumns(rows, {
      cellOf: ({ row }) => drawn(row),
      scaleOf: ({ row }) => row.unit || row.metric,
      isDifference: true,
      toneOf: ({ row }) => TONES[directionOf(row.verdict)],
    }),
    {
      name: "Means",
      title: "Of the first above that of the second, over the paired documents",
      class: "number means",
      value: ({ row }) => row.first,
      cell: ({ row }) => (
        <>
          {share(row, row.first)}
          <small class="line">{share(row, row.second)}</small>
        </>
      ),
    },
    {
      name: "p (Holm)",
      title: `Corrected over ${correctedOver}`,
      class: "number",
      value: ({ row }) => row.p_holm,
      cell: ({ row }) => probability(row.p_holm),
    },
    {
      name: "Smallest detectable",
      title: "Smallest true difference that these documents show with 80 % power",
      class: "number",
      value: ({ row }) => row.detectable,
      cell: ({ row }) => (row.detectable === null ? "–" : sizeOf(row, row.detectable)),
    },
    { name: "N", title: "Paired documents", class: "number", value: ({ row }) => row.pairing.paired, cell: ({ row }) => count(row.pairing.paired) },
  ];
}

/** A difference and its interval in the units in which they are shown. */
function drawn(row: Difference): Cell {
  const factor = row.unit === "percent" ? 100 : 1;
  const { interval } = row;
  return { value: factor * row.value, low: interval && factor * interval.low, high: interval && factor * interval.high, n: row.pairing.paired };
}

/** Both runs by letter, and by name where there is room. */
function PairName({ pair: { first, second } }: { pair: Pair }) {
  const { short } = useNames();
  return (
    <span class="pair-name" title={plain(`${first.name} − ${second.name}`)}>
      <span>
        <Letter run={first} /> − <Letter run={second} />
      </span>
      <small>
        <span class="line">
          <Parted>{short(first)}</Parted>
        </span>
        <span class="line">
          − <Parted>{short(second)}</Parted>
        </span>
      </small>
    </span>
  );
}

const numberColumn = (params: URLSearchParams): Column<Shown> => ({
  name: "Number",
  value: ({ row }) => labelOf(row),
  cell: ({ pair: of, row }) => (
    <>
      <TaskLink pair={of} row={row} params={params} />
      <small class="line">
        <Parted>{metricOf(row)}</Parted> <span title={row.higher_is_better ? "More is better" : "Less is better"}>{row.higher_is_better ? "↑" : "↓"}</span>
      </small>
    </>
  ),
});

export function TaskLink({ pair, row, params }: { pair: Pair; row: Difference; params: URLSearchParams }) {
  if (!kindsOfRow(pair, row)) return <Parted>{row.name}</Parted>;
  return (
    <a href={pageAddress("compare", changedParams(params, { task: row.name, metric: keyOf(row), flip: null, id: null, sort: null }))} aria-label={plain(row.name)}>
      <Parted>{row.name}</Parted>
    </a>
  );
}

export function Size({ row }: { row: Difference }) {
  return (
    <span class="score">
      <b>{withUnit(row, row.value)}</b>
      <small title={row.interval ? `${row.interval.method}, about ${aboutOf(row)}` : undefined}>{row.interval ? `[${sized(row, row.interval.low)}, ${sized(row, row.interval.high)}]` : plain(row.no_interval)}</small>
      {row.estimand === "benchmark accuracy" && <small>about this list</small>}
    </span>
  );
}

const TONES = { up: "right", down: "wrong", same: "", open: "quiet" };

/** What a verdict depends on, where documents without a score could change it: `depends on 19 documents without a score`. */
const dependsOn = (row: Difference): string => row.notes.find((note) => note.startsWith(DEPENDS))?.split(":")[0] ?? "";

export function Verdict({ row, short }: { row: Difference; short?: boolean }) {
  const direction = directionOf(row.verdict);
  return (
    <span class={`verdict ${TONES[direction]}`}>
      <span aria-hidden="true">{SIGNS[direction]}</span> {row.verdict}
      {!short && dependsOn(row) && <small class="line wrapped">{dependsOn(row)}</small>}
      {!short && leastOf(row) !== null && <small class="line" title="Documents needed for 80 % power">needs n ≥ {count(leastOf(row))}</small>}
    </span>
  );
}

/** The fewest documents that may show the difference, as large as its interval allows. */
const leastOf = (row: Difference): number | null => row.needed_least ?? row.needed;

/** Documents that are needed; none are enough for a difference of 0. */
function needed(row: Difference): string {
  const least = leastOf(row);
  if (least === null) return "";
  if (row.needed === null) return `at least ${count(least)} documents, with 80 % power`;
  if (row.needed === least) return `${count(least)} documents, with 80 % power`;
  return `${count(least)} documents (if the difference is as large as the interval allows) to ${count(row.needed)}, with 80 % power`;
}

/** How much the same requests differ when they are sent twice. */
function noise(row: Difference, found: NonNullable<Difference["reruns"]>): string {
  const size = (value: number): string => sized(row, value).replace("+", "");
  if (found.half_width_high === null) return `at most ${size(found.half_width)} in 95 %`;
  return `at most ${size(found.half_width)} in 95 % (upper end ${size(found.half_width_high)}): this difference is ${found.is_beyond ? "beyond" : "within"} it`;
}

/** All that is known of one difference. */
export function Facts({ row }: { row: Difference }) {
  const { pairing, sensitivity } = row;
  const left = [
    [pairing.only_first, "only the first has"],
    [pairing.only_second, "only the second has"],
    [pairing.unscored[0] ?? 0, "unscored in the first"],
    [pairing.unscored[1] ?? 0, "unscored in the second"],
    [pairing.failed[0] ?? 0, "failed in the first"],
    [pairing.failed[1] ?? 0, "failed in the second"],
  ] as const;
  const facts: [string, string][] = [
    ["Means", `${share(row, row.first)} and ${share(row, row.second)}`],
    ["Paired documents", count(pairing.paired)],
    ["Left out", left.filter(([documents]) => documents).map(([documents, text]) => `${count(documents)} ${text}`).join(", ") || "none"],
    ["If these counted wrong", sensitivity ? `${sized(row, sensitivity.difference)} over ${count(sensitivity.n)} documents` : ""],
    ["Whatever these would score", sensitivity && sensitivity.low !== null && sensitivity.high !== null ? `${sized(row, sensitivity.low)} to ${sized(row, sensitivity.high)}` : ""],
    ["Interval", row.interval ? `${row.interval.method}, about ${aboutOf(row)}` : row.no_interval],
    ["Test", row.p === null ? "" : `${row.test}, p ${row.p < 1e-4 ? "" : "= "}${probability(row.p)} (Holm ${probability(row.p_holm)}, Benjamini–Hochberg ${probability(row.p_bh)})`],
    ["Test on this list", row.p_list === null ? "" : `p ${row.p_list < 1e-4 ? "" : "= "}${probability(row.p_list)} of equal scores over all documents of this list, valid at every look`],
    ["Needed", needed(row)],
    ["Smallest detectable difference (80 % power)", row.detectable === null ? "" : sizeOf(row, row.detectable)],
    ["Rerun noise", row.reruns === null ? "" : noise(row, row.reruns)],
    ["If both were run again", row.reruns === null ? "" : row.reruns.interval ? `${sized(row, row.reruns.interval.low)} to ${sized(row, row.reruns.interval.high)} on this list` : `no interval (${row.reruns.no_interval})`],
    ["Notes", row.notes.join("; ")],
  ];
  return (
    <dl class="facts">
      {facts.map(([name, text]) =>
        text ? (
          <>
            <dt>{name}</dt>
            <dd>
              <Text>{text}</Text>
            </dd>
          </>
        ) : null,
      )}
    </dl>
  );
}
