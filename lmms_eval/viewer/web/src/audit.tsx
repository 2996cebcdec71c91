// The tab of parsing: how a run's answers were read, and by how much its scores would move under another rule.
import { Score, Section, SortedTable, useLoaded, Waiting, type Column } from "./common";
import { percent } from "./home";
import { plotColumns } from "./plot";
import { address } from "./route";
import { Selection } from "./selection";
import { alike, count, plain, Text } from "./text";
import type { Cell, RunEntry } from "./types";

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

/** Rows of a table that are shown at first. */
const MOST = 16;

export function Parsing({ run }: { run: RunEntry }) {
  const { content, error } = useLoaded<Audit[]>(`audit-${run.number}`);
  return (
    <>
      <p class="quiet">How each task parsed its answers, as far as it reports that. Each number links to its samples.</p>
      <Selection run={run} what="These numbers are over the samples that are listed." />
      {content ? <Parts run={run} audits={content} /> : <Waiting error={error} />}
    </>
  );
}

function Parts({ run, audits }: { run: RunEntry; audits: Audit[] }) {
  const hasRules = audits.some((one) => Object.keys(one.rules).length);
  const hasMoves = audits.some((one) => one.others.length);
  const absent = [!hasRules && "by which rule an answer was read", !hasMoves && "scores by a second rule"].filter(Boolean);
  return (
    <>
      <Section title="Answers">
        <Shares run={run} audits={audits} />
      </Section>
      {hasMoves && (
        <Section title="By another rule">
          <Moves run={run} audits={audits} />
        </Section>
      )}
      {hasRules && (
        <Section title="Deciding rules">
          <Rules run={run} audits={audits} />
        </Section>
      )}
      {absent.length > 0 && <p class="quiet">No task of this run reports {absent.join(", or ")}.</p>}
    </>
  );
}

const nameOf = (audit: Audit): string => (audit.ending ? `${audit.task}, ${audit.filter}` : audit.task);

/** A link to exactly the samples that have this value. */
function Samples(props: { run: RunEntry; audit: Audit; column: string; value: string; n: number; of?: number }) {
  const { run, audit, column, value, n, of } = props;
  const share = of ? ` (${percent(n / of)})` : "";
  if (!n) return <span class="quiet">0</span>;
  if (!value) return <>{`${count(n)}${share}`}</>;
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
  { name: "Unparsed", key: "unparsed", column: "reading", title: "Nothing was read from them; of those that are told", isOfTold: true },
  { name: "Ambiguous", key: "ambiguous", column: "reading", title: "Several things were read; of those that are told", isOfTold: true },
  { name: "Drawn", key: "drawn", column: "drawn", title: "Scored by a draw at random, since they name no choice" },
];

function Shares({ run, audits }: { run: RunEntry; audits: Audit[] }) {
  const columns: Column<Audit>[] = [
    { name: "Task", value: nameOf },
    { name: "Answers", title: "Samples that did not fail", class: "number", value: (one) => one.answers, cell: (one) => count(one.answers) },
    { name: "Told", title: "Answers of which the task tells how they were read", class: "number", value: (one) => one.told, cell: (one) => count(one.told) },
    ...COUNTS.map(({ name, key, column, title, isOfTold }): Column<Audit> => {
      const total = (one: Audit) => (isOfTold ? one.told : one.answers);
      return {
        name,
        title,
        class: "number",
        value: (one) => (total(one) ? one[key] / total(one) : null),
        cell: (one) => (total(one) ? <Samples run={run} audit={one} column={column} value={key} n={one[key]} of={total(one)} /> : <span class="quiet">not told</span>),
      };
    }),
  ];
  return <SortedTable rows={audits} columns={columns} label="Answers" most={MOST} />;
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
    { name: "Rule", value: (row) => row.rule },
    {
      name: "Answers",
      class: "number",
      value: (row) => row.n,
      cell: (row) => <Samples run={run} audit={row.audit} column={`rule.${row.field}`} value={row.rule} n={row.n} of={row.of} />,
    },
    { name: "Field", title: "Field of the metric's value that names the rule", value: (row) => row.field },
  ];
  return <SortedTable rows={rows} columns={columns} label="Rules" most={MOST} />;
}

type Move = { audit: Audit } & OtherRule;

const gain = (move: OtherRule): number => move.other_mean - move.mean;

function Moves({ run, audits }: { run: RunEntry; audits: Audit[] }) {
  const moves = audits.flatMap((audit) => audit.others.map((other): Move => ({ audit, ...other })));
  return (
    <>
      <p class="quiet">Means over the documents that have both numbers; the interval is that of pairs of documents.</p>
      <SortedTable rows={moves} columns={moveColumns(run, moves)} label="By another rule" most={MOST} />
    </>
  );
}

const cellOf = (move: Move): Cell => ({ ...move, value: gain(move) });

function moveColumns(run: RunEntry, moves: Move[]): Column<Move>[] {
  const mean = alike(moves.flatMap((move) => [move.mean, move.other_mean]));
  const size = alike(moves.flatMap((move) => [gain(move), move.low, move.high]));
  const signed = (value: number): string => `${value > 0 ? "+" : value < 0 ? "−" : ""}${size(Math.abs(value))}`;
  const samples = (name: string, key: "higher" | "lower"): Column<Move> => ({
    name,
    title: `Documents whose score by the other rule is ${key}`,
    class: "number",
    value: (move) => move[key],
    cell: (move) => <Samples run={run} audit={move.audit} column={`by.${move.other}`} value={key} n={move[key]} />,
  });
  return [
    {
      name: "Task",
      value: (move) => nameOf(move.audit),
      cell: (move) => (
        <span class="named">
          <Text>{nameOf(move.audit)}</Text>
          <small class="narrow">
            {plain(move.metric)} → {plain(move.other)}
          </small>
        </span>
      ),
    },
    {
      name: "Moves by",
      class: "number",
      value: gain,
      cell: (move) => (
        <span title={plain(move.method)}>
          <Score cell={cellOf(move)} shown={signed} />
        </span>
      ),
    },
    ...plotColumns(moves, { cellOf, isDifference: true }),
    { name: "Mean", class: "number", value: (move) => move.mean, cell: (move) => mean(move.mean) },
    { name: "By the other", class: "number", value: (move) => move.other_mean, cell: (move) => mean(move.other_mean) },
    { name: "N", class: "number", value: (move) => move.n, cell: (move) => count(move.n) },
    samples("Higher", "higher"),
    samples("Lower", "lower"),
    { name: "Metric", class: "later", value: (move) => move.metric },
    { name: "Other rule", class: "later", value: (move) => move.other },
  ];
}
