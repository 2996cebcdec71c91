// One evaluation: its state, then its live numbers or the tables of its results; the log is one tab away.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

import { Score, SortedTable, type Column } from "../common";
import { MOST, Results } from "../results";
import { TabList, TabPanel } from "../tabs";
import { count, plain, Text } from "../text";
import { Waiting } from "../waiting";
import { api, viewAddress, type Job, type Progress, type Tables, type TaskOutcomes, type TaskProgress } from "./api";
import { Copy } from "./copy";
import { setDraft } from "./draft";
import { Log } from "./log";
import { MakePages } from "./pages";
import { done, figure, lasted, left, shortName, State, Stop, when } from "./state";
import { useAsked } from "./store";

const EVERY_MS = 1000;

export function JobPage({ id, tab }: { id: string; tab: string }) {
  const [isOver, end] = useState(false);
  const { content: job, error, again } = useAsked(`job ${id}`, () => api.job(id), isOver ? 0 : EVERY_MS);
  const hasEnded = job !== undefined && job.state !== "queued" && job.state !== "running";
  useEffect(() => end(hasEnded), [hasEnded]);
  if (!job) return <><h1>Evaluation</h1><Waiting error={error} /></>;
  return (
    <>
      <Heading job={job} again={again} />
      {error && <p class="problem" role="alert"><Text>{error}</Text></p>}
      {job.reason && <p class="failure" role="alert"><Text>{job.reason}</Text></p>}
      <Parts job={job} hasEnded={hasEnded} tab={tab} />
    </>
  );
}

/** What there is of it: the first part is shown unless the address names another one. */
function Parts({ job, hasEnded, tab }: { job: Job; hasEnded: boolean; tab: string }) {
  const parts: [string, string, () => ComponentChildren][] = [
    ["log", "Log", () => <Log job={job.job_id} grows={!hasEnded} />],
    ["command", "Command", () => <Command job={job} />],
  ];
  if (!hasEnded) parts.unshift(["progress", "Progress", () => <Live job={job} />]);
  if (job.tables) parts.unshift(["results", "Results", () => <Tabled job={job} tables={job.tables as Tables} />]);
  const now = parts.find(([key]) => key === tab) ?? parts[0];
  const tabs = parts.map(([key, name]) => ({ key, name, address: `#/job/${job.job_id}?tab=${key}` }));
  return (
    <>
      <TabList tabs={tabs} now={now?.[0] ?? ""} label="Parts of this evaluation" />
      <TabPanel now={now?.[0] ?? ""}>{now?.[2]()}</TabPanel>
    </>
  );
}

function Heading({ job, again }: { job: Job; again: () => void }) {
  const reuse = () => {
    setDraft(job.request);
    location.hash = "#/";
  };
  const times = [job.started_at ? `started ${when(job.started_at)}` : `submitted ${when(job.created_at)}`, lasted(job, Date.now())];
  const progress = job.state === "running" && job.progress?.requested ? job.progress : null;
  return (
    <>
      <h1 title={plain(job.name)}>
        <Text>{shortName(job.name)}</Text> <span class="quiet">on</span> <Text>{job.tasks.join(", ")}</Text>
      </h1>
      <p class="job-args"><Text>{[job.model, job.model_args].filter(Boolean).join(" · ")}</Text></p>
      <div class="job-line">
        <State job={job} />
        <span class="quiet">
          {times.filter(Boolean).join(" · ")}
          {progress && ` · ${done(progress)} documents`}
        </span>
        <span class="job-actions">
          {job.can_report && <MakePages jobs={[job.job_id]}>Open the report</MakePages>}
          {job.can_view && <a class="button accent" href={viewAddress(job.job_id)}>Live view</a>}
          <button onClick={reuse}>Change and run again</button>
          <Stop job={job} done={again} />
        </span>
        {progress && <progress value={progress.done} max={progress.requested} aria-label="Documents of all tasks" />}
      </div>
    </>
  );
}

function Command({ job }: { job: Job }) {
  return (
    <>
      <div class="title-line"><h2>Command</h2><Copy text={job.command} name="the command" /></div>
      <pre class="text" tabIndex={0} aria-label="Command"><Text>{job.command}</Text></pre>
      <div class="title-line"><h2>Configuration file</h2><Copy text={job.yaml} name="the YAML" /></div>
      <pre class="text" tabIndex={0} aria-label="Configuration file"><Text>{job.yaml}</Text></pre>
    </>
  );
}

function Figure({ name, value, children }: { name: string; value: string; children?: ComponentChildren }) {
  return (
    <div class="figure">
      <dt><Text>{name}</Text></dt>
      <dd>
        <b>{value}</b>
        {children && <small>{children}</small>}
      </dd>
    </div>
  );
}

const interval = (one: { low: number | null; high: number | null }): string =>
  one.low === null || one.high === null ? "" : `${figure(one.low)} – ${figure(one.high)}`;

function Tabled({ job, tables }: { job: Job; tables: Tables }) {
  const headlines = tables.headlines.filter((row) => row.value !== null);
  const incomplete = tables.outcomes.filter((one) => one.failed || one.unscored || one.not_asked);
  return (
    <>
      {headlines.length > 0 && (
        <dl class="figures headline-figures">
          {headlines.map((row) => (
            <Figure name={row.task} value={figure(row.value ?? 0)}>
              {interval(row) && <span class="line" title="95 % interval">{interval(row)}</span>}
              <span class="line"><Text>{row.metric}</Text></span>
            </Figure>
          ))}
        </dl>
      )}
      <Results run={{ name: job.name, tasks: [], headlines: [], rows: tables.rows, counts: tables.counts }} />
      {incomplete.length > 0 && <><h2>Documents without a score</h2><SortedTable rows={incomplete} columns={OUTCOMES} label="Documents without a score" most={MOST} /></>}
    </>
  );
}

const amount = (name: string, key: "requested" | "scored" | "unscored" | "failed" | "not_asked"): Column<TaskOutcomes> => ({
  name,
  class: "number",
  value: (row) => row[key],
  cell: (row) => count(row[key] ?? 0),
});

const OUTCOMES: Column<TaskOutcomes>[] = [
  { name: "Task", value: (row) => row.task },
  amount("Requested", "requested"),
  amount("Scored", "scored"),
  amount("Unscored", "unscored"),
  amount("Failed", "failed"),
  amount("Not asked", "not_asked"),
  {
    name: "Reasons",
    value: (row) => Object.keys(row.reasons ?? {}).join("; "),
    cell: (row) => Object.entries(row.reasons ?? {}).map(([reason, times]) => <span class="line"><Text>{reason}</Text> × {count(times)}</span>),
  },
];

const rate = (value: number | null): string => (value === null ? "–" : value >= 10 ? value.toFixed(0) : value.toFixed(2));

function Live({ job }: { job: Job }) {
  const progress = job.progress;
  if (job.state === "queued") return <p class="empty">It starts when the evaluations before it have ended.</p>;
  if (!progress) return <p class="empty">The run is starting: it loads the model and the data. The log shows each step.</p>;
  // One reason is mostly that of all tasks.
  const reasons = [...new Set(progress.tasks.filter((one) => one.score?.value == null).map((one) => one.score?.reason || one.reason))].filter(Boolean).slice(0, 3);
  return (
    <>
      {!progress.is_read && <p class="quiet">Reading what was answered before.</p>}
      <Figures progress={progress} />
      <div class="running">
        <SortedTable rows={progress.tasks} columns={RUNNING} label="Progress by task" most={MOST} />
      </div>
      {reasons.map((text) => <p class="quiet note">No running score: <Text>{text}</Text></p>)}
      {progress.reasons.length > 0 && (
        <ul class="warnings" aria-label="Reasons for which documents have no score">
          {progress.reasons.slice(0, 5).map((one) => (
            <li class="mild"><b>{count(one.count)}</b> × <Text>{one.text}</Text></li>
          ))}
        </ul>
      )}
    </>
  );
}

function Figures({ progress }: { progress: Progress }) {
  const { seconds_left, score, in_flight, concurrency } = progress;
  return (
    <dl class="figures">
      {score && <Figure name="Running score" value={score.value === null ? "–" : figure(score.value)}>{interval(score)}</Figure>}
      <Figure name="Documents" value={done(progress)}>
        {[progress.failed && `${count(progress.failed)} failed`, progress.unscored && `${count(progress.unscored)} unscored`].filter(Boolean).join(", ")}
      </Figure>
      <Figure name="Documents a second" value={rate(progress.rate)}>
        {progress.rate_overall !== null && `${rate(progress.rate_overall)} since the start`}
      </Figure>
      <Figure name="Time left" value={seconds_left === null ? "–" : left(seconds_left)}>at this rate</Figure>
      {progress.tokens > 0 && (
        <Figure name="Tokens" value={count(progress.tokens)}>{progress.token_rate !== null && `${rate(progress.token_rate)} a second`}</Figure>
      )}
      {in_flight !== null && (
        <Figure name="Requests in flight" value={count(in_flight)}>{concurrency !== null && `of at most ${count(concurrency)}`}</Figure>
      )}
    </dl>
  );
}

const share = (one: TaskProgress): number => (one.requested ? one.done / one.requested : 0);

const RUNNING: Column<TaskProgress>[] = [
  { name: "Task", value: (one) => one.name },
  {
    name: "Running score",
    title: "Over the first documents of the random order. The 95 % interval is for the score over all documents, and holds however often it is looked at",
    class: "number",
    value: (one) => one.score?.value ?? null,
    cell: (one) => <Running one={one} />,
  },
  {
    name: "Progress",
    class: "going",
    value: share,
    cell: (one) => <progress value={one.done} max={one.requested || undefined} aria-label={`Documents of ${plain(one.name)}`} />,
  },
  { name: "Documents", class: "number", value: (one) => one.done, cell: (one) => done(one) },
  { name: "Failed", class: "number", value: (one) => one.failed, cell: (one) => <span class={one.failed ? "problem" : "quiet"}>{count(one.failed)}</span> },
];

function Running({ one }: { one: TaskProgress }) {
  const { score } = one;
  if (!score || score.value === null) return <span class="quiet" title={plain(score?.reason || one.reason)}>–</span>;
  return (
    <span title={`Over the first ${count(score.n)} of ${count(score.of)} documents`}>
      <Score cell={{ ...score, method: "" }} shown={figure} />
    </span>
  );
}
