// The audit of a run: how its answers were read, and by how much its scores would move under another rule.
import { Bars, type Bar } from "./charts";
import { Score, Section, SortedTable, useLoaded, Waiting, type Column } from "./common";
import { percent } from "./home";
import { address } from "./route";
import { Selection } from "./selection";
import { count, number, plain, Text } from "./text";
import type { RunEntry } from "./types";

interface OtherRule {
  metric: string;
  other: string;
  n: number;
  mean: number;
  other_mean: number;
  higher: number;
  lower: number;
  low: number | null;
  high: number | null;
  method: string;
}

type Counted = "blank" | "filtered" | "truncated" | "unparsed" | "ambiguous" | "drawn";

interface Audit extends Record<Counted, number> {
  task: string;
  filter: string;
  answers: number;
  told: number;
  rules: Record<string, [string, number][]>;
  others: OtherRule[];
  /** Beginning and end of the columns by which the samples behind a count are found. */
  prefix: string;
  ending: string;
}

const PAGE = "page";
const NAME = "audit";
const MOST_BARS = 30;

export const isAudit = (params: URLSearchParams): boolean => params.get(PAGE) === NAME;

/** Behind the question mark, since what stands behind the run's name is the name of a task. */
export const auditAddress = (run: string): string => address([run], new URLSearchParams({ [PAGE]: NAME }));

export function AuditPage({ run }: { run: RunEntry }) {
  const { content, error } = useLoaded<Audit[]>(`audit-${run.number}`);
  return (
    <main>
      <h1>Answer parsing</h1>
      <p class="quiet">
        <Text>{run.name}</Text>: how each task parsed its answers, as far as it reports that. Each number links to its samples.
      </p>
      <Selection run={run} what="These numbers are over the samples that are listed." />
      {content ? <Parts run={run} audits={content} /> : <Waiting error={error} />}
    </main>
  );
}

function Parts({ run, audits }: { run: RunEntry; audits: Audit[] }) {
  return (
    <>
      <Section title="Answers">
        <Shares run={run} audits={audits} />
      </Section>
      <Section title="By another rule">
        <Moves run={run} audits={audits} />
      </Section>
      <Section title="Deciding rules">
        <Rules run={run} audits={audits} />
      </Section>
    </>
  );
}

const nameOf = (audit: Audit): string => (audit.ending ? `${audit.task}, ${audit.filter}` : audit.task);

/** A link to exactly the samples that have this value. */
function Samples(props: { run: RunEntry; audit: Audit; column: string; value: string; n: number; of?: number }) {
  const { run, audit, column, value, n, of } = props;
  const share = of ? ` (${percent(n / of)})` : "";
  if (!n || !value) return <>{`${count(n)}${share}`}</>;
  const params = new URLSearchParams({ [`m.${audit.prefix}${column}${audit.ending}`]: value });
  return (
    <a href={address([run.name, audit.task], params)}>
      {count(n)}
      {share}
    </a>
  );
}

const COUNTS: { name: string; key: Counted; column: string; title: string; isOfTold?: boolean }[] = [
  { name: "Blank", key: "blank", column: "answer", title: "Without any visible character" },
  { name: "Filtered", key: "filtered", column: "answer", title: "Held back by the service" },
  { name: "Truncated", key: "truncated", column: "answer", title: "Cut off at the limit of tokens" },
  { name: "Unparsed", key: "unparsed", column: "reading", title: "No answer found in the text; of the answers whose parsing is reported", isOfTold: true },
  { name: "Ambiguous", key: "ambiguous", column: "reading", title: "Several answers found in the text; of the answers whose parsing is reported", isOfTold: true },
  { name: "Random guess", key: "drawn", column: "drawn", title: "Scored by a random guess, because they name no option" },
];

function Shares({ run, audits }: { run: RunEntry; audits: Audit[] }) {
  const columns: Column<Audit>[] = [
    { name: "Task", value: nameOf },
    { name: "Answers", title: "Samples that did not fail", class: "number", value: (one) => one.answers, cell: (one) => count(one.answers) },
    { name: "Parser reported", title: "Answers whose task reports how they were parsed", class: "number", value: (one) => one.told, cell: (one) => count(one.told) },
    ...COUNTS.map(({ name, key, column, title, isOfTold }): Column<Audit> => {
      const total = (one: Audit) => (isOfTold ? one.told : one.answers);
      return {
        name,
        title,
        class: "number",
        value: (one) => (total(one) ? one[key] / total(one) : null),
        cell: (one) => (total(one) ? <Samples run={run} audit={one} column={column} value={key} n={one[key]} of={total(one)} /> : <span class="quiet">not reported</span>),
      };
    }),
  ];
  return <SortedTable rows={audits} columns={columns} label="Answers" />;
}

interface Rule {
  audit: Audit;
  field: string;
  rule: string;
  n: number;
  of: number;
}

function Rules({ run, audits }: { run: RunEntry; audits: Audit[] }) {
  const rows = audits.flatMap((audit) =>
    Object.entries(audit.rules).flatMap(([field, rules]) => {
      const of = rules.reduce((sum, [, n]) => sum + n, 0);
      return rules.map(([rule, n]): Rule => ({ audit, field, rule, n, of }));
    }),
  );
  const columns: Column<Rule>[] = [
    { name: "Task", value: (row) => nameOf(row.audit) },
    { name: "Field", title: "Field of the metric's value that names the rule", value: (row) => row.field },
    {
      name: "Answers",
      class: "number",
      value: (row) => row.n,
      cell: (row) => <Samples run={run} audit={row.audit} column={`rule.${row.field}`} value={row.rule} n={row.n} of={row.of} />,
    },
    { name: "Rule", value: (row) => row.rule },
  ];
  if (!rows.length) return <p class="quiet">No task reports which rule parsed its answers.</p>;
  return <SortedTable rows={rows} columns={columns} label="Rules" />;
}

type Move = { audit: Audit } & OtherRule;

const gain = (move: OtherRule): number => move.other_mean - move.mean;
const signed = (value: number): string => `${value > 0 ? "+" : ""}${number(value)}`;

function Moves({ run, audits }: { run: RunEntry; audits: Audit[] }) {
  const moves = audits.flatMap((audit) => audit.others.map((other): Move => ({ audit, ...other })));
  if (!moves.length) return <p class="quiet">No task scores its answers by a second rule.</p>;
  const widest = [...moves].sort((a, b) => Math.abs(gain(b)) - Math.abs(gain(a))).slice(0, MOST_BARS);
  const bars = widest.map((move): Bar => ({ ...move, name: `${nameOf(move.audit)}: ${move.other}`, value: gain(move) }));
  return (
    <>
      <p class="quiet">
        Means over the documents that have both numbers; the interval is that of pairs of documents.
        {moves.length > MOST_BARS && ` The plot shows the ${MOST_BARS} largest differences.`}
      </p>
      <Bars bars={bars} label="Difference of the mean by the other rule" isDifference />
      <SortedTable rows={moves} columns={moveColumns(run)} label="By another rule" />
    </>
  );
}

function moveColumns(run: RunEntry): Column<Move>[] {
  const samples = (name: string, key: "higher" | "lower"): Column<Move> => ({
    name,
    title: `Documents whose score by the other rule is ${key}`,
    class: "number",
    value: (move) => move[key],
    cell: (move) => <Samples run={run} audit={move.audit} column={`by.${move.other}`} value={key} n={move[key]} />,
  });
  return [
    { name: "Task", value: (move) => nameOf(move.audit) },
    { name: "Metric", value: (move) => move.metric },
    { name: "Other rule", value: (move) => move.other },
    { name: "N", class: "number", value: (move) => move.n, cell: (move) => count(move.n) },
    { name: "Mean", class: "number", value: (move) => move.mean, cell: (move) => number(move.mean) },
    { name: "By the other", class: "number", value: (move) => move.other_mean, cell: (move) => number(move.other_mean) },
    {
      name: "Moves by",
      class: "number",
      value: gain,
      cell: (move) => (
        <span title={plain(move.method)}>
          <Score cell={{ ...move, value: gain(move) }} shown={signed} />
        </span>
      ),
    },
    samples("Higher", "higher"),
    samples("Lower", "lower"),
  ];
}
