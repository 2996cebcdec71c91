// One evaluation: its state, how far it is, its scores, its log.
import { useEffect, useState } from "preact/hooks";

import { Waiting } from "../waiting";
import { count, number, plain, seconds, Text } from "../text";
import { api, viewAddress, type Job, type Progress, type Score, type TaskProgress } from "./api";
import { Copy } from "./copy";
import { setDraft } from "./draft";
import { Log } from "./log";
import { MakePages } from "./pages";
import { lasted, State, Stop, when } from "./state";
import { useAsked } from "./store";

const EVERY_MS = 1000;

export function JobPage({ id }: { id: string }) {
  const [isOver, end] = useState(false);
  const { content: job, error, again } = useAsked(`job ${id}`, () => api.job(id), isOver ? 0 : EVERY_MS);
  const hasEnded = job !== undefined && job.state !== "queued" && job.state !== "running";
  useEffect(() => end(hasEnded), [hasEnded]);
  if (!job) return <main><Waiting error={error} /></main>;
  return (
    <main>
      <Heading job={job} again={again} />
      {error && <p class="problem" role="alert"><Text>{error}</Text></p>}
      {job.error && <Failure text={job.error} />}
      {job.scores.length > 0 && <Scores scores={job.scores} />}
      {job.progress && !hasEnded && <Running progress={job.progress} />}
      <h2>Log</h2>
      <Log job={id} grows={!hasEnded} />
      <details>
        <summary>Command and options</summary>
        <pre class="text"><Text>{job.command}</Text></pre>
        <Copy text={job.command} name="the command" />
        <pre class="text"><Text>{job.yaml}</Text></pre>
        <Copy text={job.yaml} name="the YAML" />
      </details>
    </main>
  );
}

function Heading({ job, again }: { job: Job; again: () => void }) {
  const reuse = () => {
    setDraft(job.request);
    location.hash = "#/";
  };
  const times = [job.started_at ? `started ${when(job.started_at)}` : `submitted ${when(job.created_at)}`, lasted(job, Date.now())];
  return (
    <>
      <h1>
        <Text>{job.model}</Text> <span class="quiet">on</span> <Text>{job.tasks.join(", ")}</Text>
      </h1>
      <p class="job-line">
        <State job={job} />
        <span class="quiet">{times.filter(Boolean).join(" · ")}</span>
        <small><Text>{job.model_args}</Text></small>
      </p>
      <div class="bar">
        {job.can_report && <MakePages jobs={[job.job_id]}>Open the report</MakePages>}
        {job.can_view && <a class="button accent" href={viewAddress(job.job_id)}>Live view</a>}
        <button onClick={reuse}>Change and run again</button>
        <Stop job={job} done={again} />
      </div>
    </>
  );
}

function Failure({ text }: { text: string }) {
  const [first, ...rest] = text.split("\n");
  return (
    <div class="failure" role="alert">
      <p class="problem"><b><Text>{first}</Text></b></p>
      {rest.length > 0 && (
        <details open>
          <summary>The end of its log</summary>
          <pre class="text grave"><Text>{rest.join("\n")}</Text></pre>
        </details>
      )}
    </div>
  );
}

const interval = (one: { low: number | null; high: number | null }): string =>
  one.low === null || one.high === null ? "" : `${number(one.low)} – ${number(one.high)}`;

function Scores({ scores }: { scores: Score[] }) {
  return (
    <>
      <h2>Scores</h2>
      <div class="scroll" role="region" aria-label="Scores" tabIndex={0}>
        <table>
          <thead>
            <tr><th>Task</th><th>Metric</th><th class="number">Score</th><th class="number">95 % interval</th><th class="number">Documents</th></tr>
          </thead>
          <tbody>
            {scores.map((one) => (
              <tr>
                <th scope="row"><Text>{one.task}</Text></th>
                <td><Text>{one.metric}</Text></td>
                <td class="number">{one.withheld ? <span class="problem" title={one.withheld}>withheld</span> : <b>{number(one.value)}</b>}</td>
                <td class="number quiet">{interval(one)}</td>
                <td class="number">{count(one.documents)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Running({ progress }: { progress: Progress }) {
  const { done, requested, failed, rate, seconds_left, tokens, reasons } = progress;
  const facts = [
    `${count(done)} of ${count(requested)} documents`,
    rate === null ? "" : `${rate >= 10 ? rate.toFixed(0) : rate.toFixed(2)} a second`,
    seconds_left === null ? "" : `${seconds(Math.max(1, seconds_left))} left`,
    tokens > 0 ? `${count(tokens)} tokens` : "",
    failed > 0 ? `${count(failed)} failed` : "",
  ];
  return (
    <>
      <h2>Progress</h2>
      <p class="quiet">{progress.is_read ? facts.filter(Boolean).join(" · ") : "What is there already is being read."}</p>
      <ul class="running">{progress.tasks.map((one) => <TaskLine key={one.name} one={one} />)}</ul>
      {reasons.length > 0 && (
        <ul class="warnings" aria-label="Reasons for which documents have no score">
          {reasons.slice(0, 5).map((one) => (
            <li class="mild"><b>{one.count}</b> <Text>{one.text}</Text></li>
          ))}
        </ul>
      )}
    </>
  );
}

function TaskLine({ one }: { one: TaskProgress }) {
  const reason = one.score ? (one.score.value === null ? one.score.reason : "") : one.reason;
  return (
    <li>
      <b><Text>{one.name}</Text></b>
      <progress value={one.done} max={one.requested || undefined} aria-label={`Documents of ${plain(one.name)}`} />
      <span class="number">{count(one.done)} of {count(one.requested)}</span>
      <span class="number" title="score so far, over the first documents of the random order">
        {one.score && one.score.value !== null && (
          <>
            <b>{number(one.score.value)}</b> <small>{interval(one.score)}</small>
          </>
        )}
      </span>
      {one.failed > 0 && <span class="badge grave">{count(one.failed)} failed</span>}
      {reason && <small class="reason">no running score: <Text>{reason}</Text></small>}
    </li>
  );
}
