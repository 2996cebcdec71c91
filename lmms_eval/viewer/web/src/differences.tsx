// Numbers of a comparison: the differences as a table and as a forest plot, and all that is known of one of them.
import { useEffect, useRef } from "preact/hooks";

import { Section, SortedTable, type Column } from "./common";
import { aboutOf, labelOf, metricOf, percent, probability, share, sized } from "./amounts";
import { Forests } from "./forest";
import { changedParams, keyOf, kindsOfRow, DEPENDS, type Difference, type Pair, type Summary, type Verdict as VerdictWord } from "./pairs";
import { pageAddress } from "./route";
import { count, plain, Text } from "./text";

export interface Shown {
  pair: Pair;
  row: Difference;
}

interface DifferencesProps {
  summary: Summary;
  pairs: Pair[];
  row: Difference | undefined;
  params: URLSearchParams;
}

export function Differences({ summary, pairs, row: chosen, params }: DifferencesProps) {
  const rows = byNumber(pairs);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const found = box.current?.querySelector<HTMLElement>("tr.chosen");
    const around = found?.closest(".scroll");
    if (found && around && found.offsetTop > around.scrollTop + around.clientHeight - found.offsetHeight) around.scrollTop = found.offsetTop - 80;
  }, [chosen]);
  if (!rows.length) return null;
  const several = pairs.length > 1;
  const isChosen = ({ row }: Shown): boolean => chosen !== undefined && row.name === chosen.name && keyOf(row) === keyOf(chosen);
  const plotted = several ? rows.filter(isChosen) : rows;
  return (
    <Section title="Differences">
      <p class="quiet">
        First − second, with {percent(1 - summary.alpha)} intervals{rows.some(({ row }) => row.interval) && ` about ${estimands(rows)}`}; a verdict says what the first is. {!several && <PairNames pair={rows[0]?.pair} />}
      </p>
      <div class="forest" ref={box}>
        <div class="plots">
          {several && chosen && <h3>{plain(labelOf(chosen))}</h3>}
          <Forests rows={plotted.map(({ pair, row }) => ({ row, lines: several ? [pair.first.name, `− ${pair.second.name}`] : [row.name, metricOf(row)] }))} />
        </div>
        <SortedTable rows={rows} columns={columns(several, params)} label="Differences" rowClass={(one) => (isChosen(one) ? "chosen" : "")} />
      </div>
    </Section>
  );
}

/** What the intervals are about, each kind once. */
const estimands = (rows: Shown[]): string => [...new Set(rows.map(({ row }) => aboutOf(row)).filter(Boolean))].join(", or ");

/** Rows of all pairs, those of one number together. */
function byNumber(pairs: Pair[]): Shown[] {
  const groups = new Map<string, Shown[]>();
  for (const pair of pairs)
    for (const row of pair.rows) {
      const key = JSON.stringify([row.name, keyOf(row)]);
      groups.set(key, [...(groups.get(key) ?? []), { pair, row }]);
    }
  return [...groups.values()].flat();
}

const PairNames = ({ pair }: { pair?: Pair }) => (
  <>
    First: <Text>{pair?.first.name}</Text>; second: <Text>{pair?.second.name}</Text>.
  </>
);

/** Columns of every table of differences, behind the name of what differs. */
export function numberColumns(several: boolean, correctedOver: string): Column<Shown>[] {
  const pair: Column<Shown> = {
    name: "Pair",
    value: ({ pair: { first, second } }) => `${first.name} − ${second.name}`,
    cell: ({ pair: { first, second } }) => (
      <>
        <Text>{first.name}</Text>
        <small class="line">
          − <Text>{second.name}</Text>
        </small>
      </>
    ),
  };
  return [
    ...(several ? [pair] : []),
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
      name: "Difference",
      title: "With its interval, and what that is about",
      class: "number",
      value: ({ row }) => row.value,
      cell: ({ row }) => <Size row={row} />,
    },
    { name: "Verdict", value: ({ row }) => row.verdict, cell: ({ row }) => <Verdict row={row} /> },
    {
      name: "p (Holm)",
      title: `Corrected over ${correctedOver}`,
      class: "number",
      value: ({ row }) => row.p_holm,
      cell: ({ row }) => probability(row.p_holm),
    },
    { name: "N", title: "Paired documents", class: "number", value: ({ row }) => row.pairing.paired, cell: ({ row }) => count(row.pairing.paired) },
  ];
}

const columns = (several: boolean, params: URLSearchParams): Column<Shown>[] => [
  {
    name: "Number",
    value: ({ row }) => labelOf(row),
    cell: ({ pair: of, row }) => (
      <>
        <TaskLink pair={of} row={row} params={params} />
        <small class="line">
          <Text>{metricOf(row)}</Text> <span title={row.higher_is_better ? "More is better" : "Less is better"}>{row.higher_is_better ? "↑" : "↓"}</span>
        </small>
      </>
    ),
  },
  ...numberColumns(several, "all differences of this report"),
];

function TaskLink({ pair, row, params }: { pair: Pair; row: Difference; params: URLSearchParams }) {
  if (!kindsOfRow(pair, row)) return <Text>{row.name}</Text>;
  return (
    <a href={pageAddress("compare", changedParams(params, { task: row.name, metric: keyOf(row), flip: null, id: null, sort: null }))}>
      <Text>{row.name}</Text>
    </a>
  );
}

export function Size({ row }: { row: Difference }) {
  return (
    <span class="score">
      <b>
        {sized(row, row.value)}
        {row.unit === "percent" && " pp"}
      </b>
      <small title={row.interval ? `${row.interval.method}, about ${aboutOf(row)}` : undefined}>{row.interval ? `[${sized(row, row.interval.low)}, ${sized(row, row.interval.high)}]` : plain(row.no_interval)}</small>
      {row.estimand === "benchmark accuracy" && <small>about this list</small>}
    </span>
  );
}

const TONES: Record<VerdictWord, string> = {
  better: "right",
  worse: "wrong",
  equivalent: "",
  "ahead on this list": "right",
  "behind on this list": "wrong",
  "equivalent on this list": "",
  "cannot tell": "quiet",
};

/** What a verdict depends on, where documents without a score could change it: `depends on 19 documents without a score`. */
const dependsOn = (row: Difference): string => row.notes.find((note) => note.startsWith(DEPENDS))?.split(":")[0] ?? "";

export const Verdict = ({ row, short }: { row: Difference; short?: boolean }) => (
  <span class={`verdict ${TONES[row.verdict]}`}>
    {row.verdict}
    {!short && dependsOn(row) && <small class="line wrapped">{dependsOn(row)}</small>}
    {!short && leastOf(row) !== null && <small class="line">n ≥ {count(leastOf(row))}</small>}
  </span>
);

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
    ["Detectable", row.detectable === null ? "" : `${sized(row, row.detectable).replace("+", "")}${row.unit === "percent" ? " pp" : ""} with 80 % power`],
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
