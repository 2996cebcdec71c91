// The first page: runs, what to be warned of, and a matrix of tasks and runs.
import { cut } from "./amounts";
import { Score, Section, SortedTable, Waiting, Warnings, type Column } from "./common";
import { LiveLine } from "./live";
import { Name } from "./name";
import { address } from "./route";
import { count, plain, seconds, Text, told } from "./text";
import type { JsonObject, Report, ResultRow, RunEntry } from "./types";

/** Characters of what chose the samples: --ids may name thousands. */
const MOST_CHOSEN = 120;

/** The first number of each task. */
function firsts(run: RunEntry): ResultRow[] {
  const seen = new Set<string>();
  return run.rows.filter((row) => !seen.has(row.task) && (row.value !== null || row.withheld) && seen.add(row.task));
}

/** The benchmarks' own numbers, then the first one of each task. */
export const headlines = (run: RunEntry): ResultRow[] => [...run.headlines.filter((row) => row.value !== null), ...firsts(run)];

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

/** The time of all stages, and of those that took a fifth of it or more. */
function Time({ run }: { run: RunEntry }) {
  const whole = duration(run);
  const all = STAGES.filter((stage) => typeof run.timing[stage] === "number").map((stage): [string, number] => [stage, run.timing[stage] as number]);
  return (
    <span title={all.map(([stage, time]) => `${stage} ${seconds(time)}`).join(" · ")}>
      {seconds(whole)}
      {all
        .filter(([, time]) => whole && time >= whole / 5)
        .map(([stage, time]) => (
          <small class="line">
            {stage} {seconds(time)}
          </small>
        ))}
    </span>
  );
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
        <a href={address([run.name])} aria-label={plain(run.name)}>
          <Name ending={12}>{run.name}</Name>
        </a>
        <small class="sub" title={plain(told(run.model_args) || run.model)}>
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
  { name: "Date", value: date, cell: (run) => date(run).split(" ").map((part) => <span class="line whole">{part}</span>) },
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
    cell: (run) => <Time run={run} />,
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
        <a class="line" href={address([run.name, task.name])} aria-label={plain(task.name)}>
          <Name>{task.name}</Name>
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
          <small class="line">
            <Text>{cut(row.metric, 24)}</Text>
          </small>
          <Score cell={row} />
        </span>
      ))}
    </div>
  );
}

function Matrix({ report }: { report: Report }) {
  const named = (row: ResultRow, run: RunEntry): string => (run.headlines.includes(row) ? `${row.task}: ${row.metric}` : row.task);
  const byRun = report.runs.map((run) => new Map(headlines(run).map((row) => [named(row, run), row])));
  const own = new Set(report.runs.flatMap((run) => run.headlines.map((row) => named(row, run))));
  const all = [...new Set(byRun.flatMap((rows) => [...rows.keys()]))];
  const tasks = [...all.filter((name) => own.has(name)), ...all.filter((name) => !own.has(name))];
  return (
    <div class="scroll" role="region" aria-label="Tasks and runs" tabIndex={0}>
      <table class="matrix">
        <thead>
          <tr>
            <th scope="col">Task</th>
            {report.runs.map((run) => (
              <th class="number" scope="col">
                <a href={address([run.name])} aria-label={plain(run.name)}>
                  <Name ending={8}>{run.name}</Name>
                </a>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {tasks.map((task) => (
            <tr>
              <th scope="row" aria-label={plain(task)}>
                <Name>{task}</Name>
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
    report.options.chosen.length > 0 && `only samples by ${cut(plain(report.options.chosen.join(" ")), MOST_CHOSEN)}`,
    report.options.media === "none" && "no media",
    report.options.redact.length > 0 && `left out: ${report.options.redact.map(plain).join(", ")}`,
  ].filter(Boolean);
  return (
    <main>
      <h1>{report.runs.length === 1 ? "One run" : report.runs.length ? `${report.runs.length} runs` : "No run yet"}</h1>
      <p class="quiet wrapped">
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
            <SortedTable rows={report.runs} columns={COLUMNS.filter((one) => one.name !== "Cost" || report.runs.some((run) => cost(run) !== "–"))} label="Runs" />
          </Section>
          <Section title="Tasks">
            <Matrix report={report} />
          </Section>
        </>
      )}
    </main>
  );
}
