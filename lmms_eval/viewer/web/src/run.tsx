// The page of one run: numbers, breakdowns, outcomes, times, and how it came about.
import { auditAddress } from "./audit";
import { Benchmarks } from "./benchmarks";
import { Biases } from "./biases";
import { Breakdowns, Distributed } from "./breakdowns";
import { Certainty } from "./certainty";
import { isFew } from "./charts";
import { Score, Section, SortedTable, useLoaded, Waiting, Warnings, type Column } from "./common";
import { percent, State } from "./home";
import { LiveSection } from "./live";
import { NeedsMedia } from "./needs_media";
import { Prompts } from "./prompts";
import { Provenance } from "./provenance";
import { address, ALL } from "./route";
import { count, number, Text } from "./text";
import type { Outcomes, ResultRow, RunDetails, RunEntry, TaskEntry } from "./types";

/** Rows of a table that are shown at first. */
const MOST = 16;

export function RunPage({ run }: { run: RunEntry }) {
  const { content, error } = useLoaded<RunDetails>(`run-${run.number}`);
  return (
    <main>
      <h1>
        <Text>{run.name}</Text>
      </h1>
      <p class="quiet">
        <State run={run} /> <Text>{run.model}</Text> · {run.date.slice(0, 10) || "no date"} · <Text>{run.source}</Text>
      </p>
      <p>
        <a class="button" href={address([run.name, run.tasks.length === 1 ? run.tasks[0]?.name : ALL])}>
          Samples ({count(run.tasks.reduce((sum, task) => sum + task.samples, 0))})
        </a>{" "}
        <a class="button" href={auditAddress(run.name)}>
          How answers were read
        </a>
      </p>
      <Warnings warnings={run.warnings} />
      {run.live && <LiveSection run={run} live={run.live} />}
      <Section title="Results">
        <Results run={run} />
      </Section>
      {content ? <Details run={run} details={content} /> : <Waiting error={error} />}
    </main>
  );
}

function Results({ run }: { run: RunEntry }) {
  const known = new Set(run.tasks.map((task) => task.name));
  const columns: Column<ResultRow>[] = [
    {
      name: "Task",
      value: (row) => row.task,
      cell: (row) =>
        known.has(row.task) ? (
          <a href={address([run.name, row.task])}>
            <Text>{row.task}</Text>
          </a>
        ) : (
          <Text>{row.task}</Text>
        ),
    },
    {
      name: "Metric",
      value: (row) => row.metric,
      cell: (row) => (
        <>
          <Text>{row.metric}</Text> {!row.higher && <span title="Lower is better">↓</span>}
        </>
      ),
    },
    { name: "Value", title: "With its 95 % interval", class: "number", value: (row) => row.value, cell: (row) => <Score cell={row} /> },
    { name: "Stderr", class: "number", value: (row) => row.stderr ?? null, cell: (row) => number(row.stderr) },
    { name: "N", title: "Documents that gave the metric", class: "number", value: (row) => row.n, cell: (row) => count(row.n) },
    {
      name: "Interval",
      title: "How the interval came about, and what it is about",
      class: "words",
      value: (row) => row.method ?? "",
      cell: (row) => (
        <>
          <Text>{row.method}</Text>
          {row.about && <small class="line">about {row.about}</small>}
        </>
      ),
    },
    { name: "Filter", value: (row) => row.filter },
  ];
  return <SortedTable rows={run.rows} columns={columns} label="Results" most={MOST} rowClass={(row) => (isFew(row) ? "few" : "")} />;
}

function Details({ run, details }: { run: RunEntry; details: RunDetails }) {
  return (
    <>
      <Certainty details={details} />
      <Benchmarks document={details.document} />
      <Biases document={details.document} />
      <Prompts document={details.document} />
      <Breakdowns run={run} details={details} />
      <NeedsMedia document={details.document} />
      <Section title="Outcomes">
        {run.tasks.length > 1 && <OutcomeSums run={run} />}
        <OutcomeTable run={run} />
      </Section>
      <Distributed run={run} details={details} />
      <Section title="How it was made">
        <Provenance run={run} details={details} />
      </Section>
    </>
  );
}

const KINDS: [keyof Outcomes, string][] = [
  ["requested", "Asked for"],
  ["scored", "Scored"],
  ["unscored", "Unscored"],
  ["failed", "Failed"],
  ["not_asked", "Not asked"],
  ["blank", "Blank"],
  ["filtered", "Filtered"],
  ["truncated", "Truncated"],
];

/** Sums over all tasks, as one bar of kinds would show them. */
function OutcomeSums({ run }: { run: RunEntry }) {
  const sums = KINDS.map(([key, name]): [string, number] => [
    name,
    run.tasks.reduce((sum, task) => sum + ((task.outcomes[key] as number | undefined) ?? 0), 0),
  ]);
  return (
    <p>
      {sums
        .filter(([, number], place) => place < 2 || number > 0)
        .map(([name, number]) => `${name}: ${count(number)}`)
        .join(" · ")}
    </p>
  );
}

function OutcomeTable({ run }: { run: RunEntry }) {
  const kinds = KINDS.filter(([key], place) => place < 2 || run.tasks.some((task) => task.outcomes[key]));
  const columns: Column<TaskEntry>[] = [
    {
      name: "Task",
      value: (task) => task.name,
      cell: (task) => (
        <a href={address([run.name, task.name])}>
          <Text>{task.name}</Text>
        </a>
      ),
    },
    ...kinds.map(
      ([key, name]): Column<TaskEntry> => ({
        name,
        class: "number",
        value: (task) => (task.outcomes[key] as number | undefined) ?? null,
        cell: (task) => count(task.outcomes[key] as number | undefined),
      }),
    ),
    { name: "Coverage", class: "number", value: (task) => task.outcomes.coverage ?? null, cell: (task) => percent(task.outcomes.coverage ?? null) },
    {
      name: "Reasons",
      value: (task) => Object.keys(task.outcomes.reasons ?? {}).join("; "),
      cell: (task) =>
        Object.entries(task.outcomes.reasons ?? {}).map(([reason, times]) => (
          <span class="line">
            <Text>{reason}</Text> × {count(times)}
          </span>
        )),
    },
  ];
  const rows = [...run.tasks].sort((a, b) => (a.outcomes.coverage ?? 1) - (b.outcomes.coverage ?? 1)); // what is missing first
  return <SortedTable rows={rows} columns={columns} label="Outcomes" most={MOST} />;
}
