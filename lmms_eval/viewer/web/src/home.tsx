// The first page: runs, what to be warned of, and a matrix of tasks and runs.
import { Score, Section, SortedTable, Waiting, Warnings, type Column } from "./common";
import { LiveLine } from "./live";
import { address } from "./route";
import { count, plain, seconds, Text, told } from "./text";
import type { JsonObject, Report, ResultRow, RunEntry } from "./types";

export function headlines(run: RunEntry): ResultRow[] {
  const seen = new Set<string>();
  return run.rows.filter((row) => !seen.has(row.task) && (row.value !== null || row.withheld) && seen.add(row.task));
}

export function total(run: RunEntry, key: string): number | null {
  const sum = (run.usage.total as JsonObject | undefined)?.[key];
  return typeof sum === "number" ? sum : null;
}

export function cost(run: RunEntry): string {
  const found = run.usage.cost as JsonObject | undefined;
  const amount = found?.total ?? found?.cost ?? null;
  return typeof amount === "number" ? `${amount.toFixed(2)} ${found?.currency ?? ""}` : "–";
}

export function coverage(run: RunEntry): number | null {
  const asked = run.tasks.reduce((sum, task) => sum + (task.outcomes.requested ?? task.samples), 0);
  const scored = run.tasks.reduce((sum, task) => sum + (task.outcomes.scored ?? 0), 0);
  return asked ? scored / asked : null;
}

const STAGES = ["collect", "ask", "score", "check", "aggregate"];

function stages(run: RunEntry): string {
  return STAGES.filter((stage) => typeof run.timing[stage] === "number")
    .map((stage) => `${stage} ${seconds(run.timing[stage] as number)}`)
    .join(" · ");
}

const duration = (run: RunEntry): number | null => {
  const known = STAGES.map((stage) => run.timing[stage]).filter((value): value is number => typeof value === "number");
  return known.length ? known.reduce((sum, value) => sum + value, 0) : null;
};

const date = (run: RunEntry): string => run.date.replace("T", " ").slice(0, 16);

const COLUMNS: Column<RunEntry>[] = [
  {
    name: "Run",
    value: (run) => run.name,
    cell: (run) => (
      <>
        <a href={address([run.name])}>
          <Text>{run.name}</Text>
        </a>
        <small class="sub">
          <Text>{told(run.model_args) || run.model}</Text>
        </small>
      </>
    ),
  },
  {
    name: "Tasks",
    value: (run) => run.tasks.map((task) => task.name).join(", "),
    cell: (run) => <TaskNames run={run} />,
  },
  {
    name: "Numbers",
    title: "First numbers of the run, with their 95 % intervals",
    value: (run) => headlines(run)[0]?.value ?? null,
    cell: (run) => <Headlines run={run} />,
  },
  { name: "State", value: (run) => run.state || run.kind, cell: (run) => <><State run={run} />{run.live && <LiveLine live={run.live} />}</> },
  {
    name: "Coverage",
    title: "Documents that were scored, of those asked for",
    class: "number",
    value: coverage,
    cell: (run) => percent(coverage(run)),
  },
  { name: "Date", value: date },
  {
    name: "Tokens",
    title: "Tokens in and out",
    class: "number",
    value: (run) => total(run, "total_tokens"),
    cell: (run) => count(total(run, "total_tokens")),
  },
  { name: "Cost", class: "number", value: cost },
  {
    name: "Time",
    title: "Time of all stages",
    class: "number",
    value: duration,
    cell: (run) => <span title={stages(run)}>{seconds(duration(run))}</span>,
  },
];

export const percent = (value: number | null): string =>
  value === null ? "–" : `${(100 * value).toFixed(value === 1 || value === 0 ? 0 : 1)} %`;

export function State({ run }: { run: RunEntry }) {
  const state = run.state || run.kind;
  const tone = state === "complete" || !run.state ? "" : run.live?.is_going ? "going" : "grave";
  return <span class={`badge ${tone}`}>{plain(state)}</span>;
}

function TaskNames({ run }: { run: RunEntry }) {
  const shown = run.tasks.slice(0, 2);
  return (
    <>
      {shown.map((task) => (
        <a class="line" href={address([run.name, task.name])}>
          <Text>{task.name}</Text>
        </a>
      ))}
      {run.tasks.length > 2 && <small>and {run.tasks.length - 2} more</small>}
    </>
  );
}

function Headlines({ run }: { run: RunEntry }) {
  const rows = headlines(run).slice(0, 2);
  return (
    <div class="headlines">
      {rows.map((row) => (
        <span title={plain(`${row.task}: ${row.metric}`)}>
          <Score cell={row} />
        </span>
      ))}
    </div>
  );
}

function Matrix({ report }: { report: Report }) {
  const tasks = [...new Set(report.runs.flatMap((run) => headlines(run).map((row) => row.task)))];
  const byRun = report.runs.map((run) => new Map(headlines(run).map((row) => [row.task, row])));
  return (
    <div class="scroll" role="region" aria-label="Tasks and runs" tabIndex={0}>
      <table class="matrix">
        <thead>
          <tr>
            <th>Task</th>
            {report.runs.map((run) => (
              <th class="number">
                <a href={address([run.name])}>
                  <Text>{run.name}</Text>
                </a>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {tasks.map((task) => (
            <tr>
              <th scope="row">
                <Text>{task}</Text>
              </th>
              {report.runs.map((run, place) => (
                <td class="number">
                  <Entry run={run} row={byRun[place]?.get(task)} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Entry({ run, row }: { run: RunEntry; row?: ResultRow }) {
  if (!row) return <span class="quiet">–</span>;
  const score = <Score cell={row} />;
  const known = run.tasks.some((task) => task.name === row.task);
  return known ? (
    <a href={address([run.name, row.task])} title={plain(row.metric)}>
      {score}
    </a>
  ) : (
    score
  );
}

export function Home({ report }: { report: Report }) {
  const warnings = report.runs.flatMap((run) =>
    run.warnings.map((one) => ({ ...one, task: report.runs.length > 1 ? `${run.name}${one.task ? ` · ${one.task}` : ""}` : one.task })),
  );
  const samples = report.runs.reduce((sum, run) => sum + run.tasks.reduce((part, task) => part + task.samples, 0), 0);
  const limits = [
    report.options.chosen.length > 0 && `only samples by ${plain(report.options.chosen.join(" "))}`,
    report.options.media === "none" && "no media",
    report.options.redact.length > 0 && `left out: ${report.options.redact.map(plain).join(", ")}`,
  ].filter(Boolean);
  return (
    <main>
      <h1>{report.runs.length === 1 ? "One run" : report.runs.length ? `${report.runs.length} runs` : "No run yet"}</h1>
      <p class="quiet">
        {count(samples)} samples, {report.view ? "in " : "written "}
        {report.view ? (
          <Text>{report.view.folder}</Text>
        ) : (
          `${new Date(report.written * 1000).toISOString().slice(0, 16).replace("T", " ")} UTC`
        )}
        {limits.length ? ` · ${limits.join(" · ")}` : ""}
      </p>
      {(report.compared?.length ?? 0) > 0 && (
        <p>
          <a class="button" href="#/:compare">
            Compare
          </a>
        </p>
      )}
      {report.view?.problems.map((problem) => <Waiting key={problem} error={problem} />)}
      {!report.runs.length && <p>A run appears here when it begins.</p>}
      <Warnings warnings={warnings} />
      {report.runs.length > 0 && (
        <>
          <Section title="Runs">
            <SortedTable rows={report.runs} columns={COLUMNS} label="Runs" />
          </Section>
          <Section title="Tasks">
            <Matrix report={report} />
          </Section>
        </>
      )}
    </main>
  );
}
