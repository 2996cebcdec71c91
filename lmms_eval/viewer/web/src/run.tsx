// The page of one run: numbers, breakdowns, outcomes, times, and how it came about.
import { useMemo, useState } from "preact/hooks";

import { Benchmarks } from "./benchmarks";
import { auditAddress } from "./audit";
import { Bars, HistogramChart, isFew } from "./charts";
import { Score, Section, SortedTable, useLoaded, Waiting, Warnings, type Column } from "./common";
import { cost, percent, State, total } from "./home";
import { LiveSection } from "./live";
import { address, ALL } from "./route";
import { Selection } from "./selection";
import { count, number, plain, seconds, Text, told } from "./text";
import type { Breakdown, Histogram, JsonObject, Outcomes, Part, ResultRow, RunDetails, RunEntry, TaskDetails, TaskEntry } from "./types";

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
    { name: "Value", class: "number", value: (row) => row.value, cell: (row) => <Score cell={row} /> },
    { name: "Stderr", class: "number", value: (row) => row.stderr ?? null, cell: (row) => number(row.stderr) },
    { name: "N", title: "Documents that gave the metric", class: "number", value: (row) => row.n, cell: (row) => count(row.n) },
    { name: "Interval", title: "How the interval came about", class: "words", value: (row) => row.method ?? "" },
    { name: "Filter", value: (row) => row.filter },
  ];
  return <SortedTable rows={run.rows} columns={columns} label="Results" rowClass={(row) => (isFew(row) ? "few" : "")} />;
}

function Details({ run, details }: { run: RunEntry; details: RunDetails }) {
  return (
    <>
      <Benchmarks document={details.document} />
      <Tasks run={run} details={details} />
      <Section title="Outcomes">
        <OutcomeTable run={run} />
      </Section>
      <Section title="How it was made">
        <Provenance run={run} details={details} />
      </Section>
    </>
  );
}

function Tasks({ run, details }: { run: RunEntry; details: RunDetails }) {
  const [name, choose] = useState(run.tasks[0]?.name ?? "");
  const found = details.tasks[name];
  if (!run.tasks.length) return null;
  return (
    <Section title="Breakdowns">
      <Selection run={run} what="Breakdowns and distributions are over these; results and outcomes are those of the whole run." />
      {run.tasks.length > 1 && (
        <label class="field">
          Task{" "}
          <select value={name} onChange={(event) => choose(event.currentTarget.value)}>
            {run.tasks.map((task) => (
              <option value={task.name}>{plain(task.name)}</option>
            ))}
          </select>
        </label>
      )}
      {found && <TaskNumbers key={name} run={run} task={name} details={found} />}
    </Section>
  );
}

function TaskNumbers({ run, task, details }: { run: RunEntry; task: string; details: TaskDetails }) {
  const histograms: [string, Histogram | null, string][] = [
    ["Latency", details.latency, "seconds"],
    ["Tokens in", details.tokens_in, "tokens"],
    ["Tokens out", details.tokens_out, "tokens"],
  ];
  return (
    <>
      {details.breakdowns.length === 0 && <p class="quiet">No column of the documents has few values.</p>}
      {details.breakdowns.map((one) => (
        <BreakdownPart run={run} task={task} breakdown={one} />
      ))}
      <div class="cards">
        {histograms.map(
          ([title, histogram, unit]) =>
            histogram && (
              <div class="card">
                <h3>{title}</h3>
                <HistogramChart histogram={histogram} unit={unit} />
                <p class="quiet">
                  median {number(histogram.median, 3)}, 90 % below {number(histogram.p90, 3)}, largest {number(histogram.max, 3)}
                  {histogram.beyond > 0 && ` (${count(histogram.beyond)} beyond the plot)`}, n = {count(histogram.n)}
                </p>
              </div>
            ),
        )}
      </div>
    </>
  );
}

function BreakdownPart({ run, task, breakdown }: { run: RunEntry; task: string; breakdown: Breakdown }) {
  const metrics = Object.keys(breakdown.metrics);
  const [metric, choose] = useState(metrics[0] ?? "");
  const parts = breakdown.metrics[metric] ?? [];
  const columns: Column<Part>[] = useMemo(
    () => [
      {
        name: breakdown.column,
        value: (part) => part.name,
        cell: (part) => (
          <a href={address([run.name, task], new URLSearchParams({ [`m.${breakdown.column}`]: part.name }))}>
            <Text>{part.name}</Text>
          </a>
        ),
      },
      { name: "Mean", class: "number", value: (part) => part.value, cell: (part) => <Score cell={part} /> },
      { name: "N", class: "number", value: (part) => part.n, cell: (part) => count(part.n) },
    ],
    [breakdown, run, task],
  );
  return (
    <details class="breakdown" open={parts.length <= 12}>
      <summary>
        <h3>
          <Text>{breakdown.column}</Text>
        </h3>
        <span class="quiet">{parts.length} values</span>
      </summary>
      {metrics.length > 1 && (
        <label class="field">
          Metric{" "}
          <select value={metric} onChange={(event) => choose(event.currentTarget.value)}>
            {metrics.map((name) => (
              <option value={name}>{plain(name)}</option>
            ))}
          </select>
        </label>
      )}
      <div class="halves">
        <Bars bars={parts} label={`${metric} by ${breakdown.column}`} />
        <SortedTable rows={parts} columns={columns} label={plain(breakdown.column)} rowClass={(part) => (isFew(part) ? "few" : "")} />
      </div>
    </details>
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

function OutcomeTable({ run }: { run: RunEntry }) {
  const kinds = KINDS.filter(([key], place) => place < 2 || run.tasks.some((task) => task.outcomes[key]));
  const columns: Column<TaskEntry>[] = [
    { name: "Task", value: (task) => task.name },
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
  return <SortedTable rows={run.tasks} columns={columns} label="Outcomes" />;
}

const SHOWN = ["config", "model", "judge", "cache", "sandbox", "library_versions", "machine", "versions", "n-shot", "timing", "usage"];

function Provenance({ run, details }: { run: RunEntry; details: RunDetails }) {
  const document = details.document;
  const facts: [string, unknown][] = [
    ["Model", run.model],
    ["Arguments", told(run.model_args)],
    ["Run key", document.run_key],
    ["Commit", document.git_hash],
    ["Version", (document.library_versions as JsonObject | undefined)?.lmms_eval],
    ["Prompts", document.prompt_fingerprint],
    ["Tokens", total(run, "total_tokens") === null ? "" : `${count(total(run, "input_tokens"))} in, ${count(total(run, "output_tokens"))} out`],
    ["Cost", cost(run) === "–" ? "" : cost(run)],
    ["Wall time", run.seconds ? seconds(Number(run.seconds)) : ""],
  ];
  const parts = SHOWN.filter((key) => document[key] && Object.keys(document[key] as object).length);
  return (
    <>
      <dl class="facts">
        {facts.map(
          ([name, value]) =>
            value ? (
              <>
                <dt>{name}</dt>
                <dd>
                  <Text>{told(value)}</Text>
                </dd>
              </>
            ) : null,
        )}
      </dl>
      {run.command && (
        <>
          <h3>Command that continues the run</h3>
          <pre class="text">
            <Text>{run.command}</Text>
          </pre>
        </>
      )}
      {run.notes.length > 0 && (
        <ul>
          {run.notes.map((note) => (
            <li>
              <Text>{note}</Text>
            </li>
          ))}
        </ul>
      )}
      {parts.map((key) => (
        <details>
          <summary>{key.replaceAll("_", " ")}</summary>
          <pre class="text">
            <Text>{JSON.stringify(document[key], null, 2)}</Text>
          </pre>
        </details>
      ))}
    </>
  );
}
