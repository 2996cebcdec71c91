// Breakdowns of a task by the columns of its documents, and the distributions of its latencies and tokens.
import { useMemo, useState } from "preact/hooks";

import { metricName } from "./cells";
import { HistogramChart } from "./charts";
import { Section, SortedTable, type Column } from "./common";
import { countColumn, fewNote, plotColumns, scoreColumn } from "./plot";
import { address } from "./route";
import { Selection } from "./selection";
import { count, number, plain, Text } from "./text";
import type { Breakdown, Cell, Distributions, Histogram, Part, RunDetails, RunEntry, TaskDetails } from "./types";

/** Values of a column that are shown at first. */
const MOST = 24;

/** A run that has other parts to show need not be told to have none by metadata. */
export function Breakdowns({ run, details, hasOthers }: { run: RunEntry; details: RunDetails; hasOthers: boolean }) {
  const tasks = run.tasks.map((task) => task.name).filter((task) => details.tasks[task]?.breakdowns.length);
  const [name, choose] = useState(tasks[0] ?? "");
  const found = details.tasks[name];
  if (!run.tasks.length || (!found && hasOthers)) return null;
  return (
    <Section title="By metadata">
      <Selection run={run} what="Breakdowns are over these; results and outcomes are those of the whole run." />
      <Tasks names={tasks} now={name} choose={choose} />
      {found ? <Columns key={name} run={run} task={name} breakdowns={found.breakdowns} /> : <p class="quiet">No metadata to group by.</p>}
    </Section>
  );
}

export function Tasks({ names, now, choose }: { names: string[]; now: string; choose: (name: string) => void }) {
  if (names.length < 2) return null;
  return (
    <label class="field">
      Task
      <select class="long" value={now} onChange={(event) => choose(event.currentTarget.value)}>
        {names.map((name) => (
          <option value={name}>{plain(name) || "all tasks"}</option>
        ))}
      </select>
    </label>
  );
}

function Columns({ run, task, breakdowns }: { run: RunEntry; task: string; breakdowns: Breakdown[] }) {
  const metrics = Object.keys(breakdowns[0]?.metrics ?? {});
  const [metric, choose] = useState(metrics[0] ?? "");
  return (
    <>
      {metrics.length > 1 && (
        <label class="field">
          Metric
          <select value={metric} onChange={(event) => choose(event.currentTarget.value)}>
            {metrics.map((name) => (
              <option value={name}>{metricName(name)}</option>
            ))}
          </select>
        </label>
      )}
      {breakdowns.map((one) => (
        <BreakdownPart key={one.column} run={run} task={task} column={one.column} metric={metric} parts={one.metrics[metric] ?? []} />
      ))}
    </>
  );
}

/** Latencies and tokens of all samples, or of those of a task. */
export function Distributed({ run, details }: { run: RunEntry; details: RunDetails }) {
  const names = run.tasks.map((task) => task.name);
  const [name, choose] = useState(names.length > 1 ? "" : (names[0] ?? ""));
  const task = details.tasks[name];
  const found = task ?? details.all;
  if (!found.latency && !found.tokens_in && !found.tokens_out && !task) return null;
  return (
    <Section title="Latency and tokens">
      <Tasks names={names.length > 1 ? ["", ...names] : []} now={name} choose={choose} />
      {task && <Ends details={task} />}
      <Histograms found={found} />
    </Section>
  );
}

function Histograms({ found }: { found: Distributions }) {
  const histograms: [string, Histogram | null, string][] = [
    ["Latency", found.latency, "seconds"],
    ["Tokens in", found.tokens_in, "tokens"],
    ["Tokens out", found.tokens_out, "tokens"],
  ];
  return (
    <div class="cards">
      {histograms.map(
        ([title, histogram, unit]) =>
          histogram &&
          histogram.n > 0 && (
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

interface PartProps {
  run: RunEntry;
  task: string;
  column: string;
  metric: string;
  parts: Part[];
}

function BreakdownPart({ run, task, column, metric, parts }: PartProps) {
  const columns: Column<Part>[] = useMemo(() => {
    const cellOf = (part: Part): Cell => part;
    return [
      {
        name: column,
        value: (part) => part.name,
        cell: (part) => (
          <a href={address([run.name, task], new URLSearchParams({ [`m.${column}`]: part.name }))}>
            <Text>{part.name}</Text>
          </a>
        ),
      },
      scoreColumn(parts, "Mean", cellOf),
      ...plotColumns(parts, { cellOf }),
      countColumn(parts, cellOf, () => "documents"),
    ];
  }, [column, run, task, parts]);
  return (
    <details class="breakdown" open={parts.length <= 12}>
      <summary>
        <h3>
          <Text>{column}</Text>
        </h3>
        <span class="quiet">{parts.length} values</span>
      </summary>
      <SortedTable rows={parts} columns={columns} label={`${metricName(metric)} by ${column}`} most={MOST} note={fewNote(parts)} />
    </details>
  );
}
