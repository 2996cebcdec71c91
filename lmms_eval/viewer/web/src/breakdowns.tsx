// Breakdowns of a task by the columns of its documents, and the distributions of its latencies and tokens.
import { useMemo, useState } from "preact/hooks";

import { Bars, HistogramChart, isFew } from "./charts";
import { Score, Section, SortedTable, type Column } from "./common";
import { address } from "./route";
import { Selection } from "./selection";
import { count, number, plain, Text } from "./text";
import type { Breakdown, Histogram, Part, RunDetails, RunEntry, TaskDetails } from "./types";

export function Breakdowns({ run, details }: { run: RunEntry; details: RunDetails }) {
  const [name, choose] = useState(run.tasks[0]?.name ?? "");
  const found = details.tasks[name];
  if (!run.tasks.length) return null;
  return (
    <Section title="Breakdowns">
      <Selection run={run} what="Breakdowns and distributions are over these; results and outcomes are those of the whole run." />
      {run.tasks.length > 1 && (
        <label class="field">
          Task{" "}
          <select class="long" value={name} onChange={(event) => choose(event.currentTarget.value)}>
            {run.tasks.map((task) => (
              <option value={task.name}>
                {plain(task.name)} {columnsOf(details.tasks[task.name])}
              </option>
            ))}
          </select>
        </label>
      )}
      {found && <TaskNumbers key={name} run={run} task={name} details={found} />}
    </Section>
  );
}

const columnsOf = (details: TaskDetails | undefined): string => (details?.breakdowns.length ? `(${details.breakdowns.length} columns)` : "");

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
      <Ends details={details} />
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

/** Why generations ended, and why samples have no score. */
function Ends({ details }: { details: TaskDetails }) {
  const told = (counts: Record<string, number>) => Object.entries(counts).filter(([name]) => name);
  const lists: [string, [string, number][]][] = [
    ["Generations ended by", told(details.finish)],
    ["Without a score for", told(details.reasons)],
  ];
  return (
    <>
      {lists.map(
        ([title, counts]) =>
          counts.length > 0 && (
            <p class="quiet">
              {title}:{" "}
              {counts.map(([name, times], place) => (
                <>
                  {place > 0 && ", "}
                  <Text>{name}</Text> ({count(times)})
                </>
              ))}
            </p>
          ),
      )}
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
