// All evaluations of this server: those that run and wait, and those that have ended, to be compared.
import { useState } from "preact/hooks";

import { count, plain, Text } from "../text";
import type { ResultRow } from "../types";
import { Waiting } from "../waiting";
import { api, type JobEntry } from "./api";
import { MakePages } from "./pages";
import { done, figure, isLarge, lasted, left, shortName, State, Stop, when } from "./state";
import { useAsked } from "./store";

const EVERY_MS = 2000;
/** Of fewer evaluations the one that is looked for is seen at once. */
const FEW = 8;
const MOST_TASKS = 3;

export function JobsPage() {
  const { content, error, again } = useAsked("jobs", api.jobs, EVERY_MS);
  const [chosen, choose] = useState<string[]>([]);
  const [word, search] = useState("");
  if (!content) return <><h1>Evaluations</h1><Waiting error={error} /></>;
  const jobs = content.jobs.filter((one) => fits(one, word));
  const open = jobs.filter((one) => one.state === "queued" || one.state === "running");
  const ended = jobs.filter((one) => !open.includes(one)).reverse();
  const comparable = chosen.filter((id) => content.jobs.some((one) => one.job_id === id && one.state === "completed"));
  const toggle = (id: string) => choose(chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen, id]);
  return (
    <>
      <div class="title-line">
        <h1>Evaluations</h1>
        <a class="button" href="#/">New evaluation</a>
      </div>
      {error && <p class="problem" role="alert"><Text>{error}</Text></p>}
      {content.jobs.length > FEW && (
        <input
          type="search"
          class="wide"
          placeholder={`Search ${count(content.jobs.length)} evaluations by model, task or state`}
          aria-label="Search evaluations"
          value={word}
          onInput={(event) => search(event.currentTarget.value)}
        />
      )}
      <h2>Running and queued</h2>
      {open.length ? <Entries jobs={open} again={again} /> : <p class="empty">No evaluations running.</p>}
      <h2>Past evaluations</h2>
      {ended.length ? <Entries jobs={ended} chosen={chosen} toggle={toggle} /> : <p class="empty">{word ? "None matches." : "None yet."}</p>}
      {ended.length > 0 && (
        <div class="bar compare-bar">
          <MakePages jobs={comparable} address="#/:compare" disabled={comparable.length < 2}>
            Compare {comparable.length > 1 ? `${comparable.length} runs` : "chosen runs"}
          </MakePages>
          {comparable.length < 2 && <small>Choose two or more finished evaluations.</small>}
        </div>
      )}
    </>
  );
}

function fits(job: JobEntry, word: string): boolean {
  const text = [job.name, job.model, job.model_args, job.state === "completed" ? "finished" : job.state, ...job.tasks].join(" ").toLowerCase();
  return word.toLowerCase().split(/\s+/).every((part) => text.includes(part));
}

interface EntriesProps {
  jobs: JobEntry[];
  chosen?: string[];
  toggle?: (id: string) => void;
  again?: () => void;
}

function Entries({ jobs, chosen, toggle, again }: EntriesProps) {
  return (
    <ul class={`jobs ${toggle ? "ended" : ""}`}>
      {jobs.map((one) => (
        <li key={one.job_id}>
          {toggle && (
            <input
              type="checkbox"
              aria-label={`Compare ${plain(one.name)} on ${plain(one.tasks.join(", "))}, ${when(one.created_at)}`}
              disabled={one.state !== "completed"}
              checked={chosen?.includes(one.job_id)}
              onChange={() => toggle(one.job_id)}
            />
          )}
          <Title job={one} />
          <Numbers job={one} />
          <span class="job-state">
            <State job={one} />
            <small>
              <time dateTime={one.completed_at ?? one.created_at}>{when(one.completed_at ?? one.started_at ?? one.created_at)}</time>
              {one.started_at && ` · ${lasted(one, Date.now())}`}
            </small>
          </span>
          {again && <Stop job={one} done={again} />}
        </li>
      ))}
    </ul>
  );
}

function Title({ job }: { job: JobEntry }) {
  const backend = [job.name === job.model ? "" : job.model, job.model_args].filter(Boolean).join(" · ");
  return (
    <a class="job-title" href={`#/job/${job.job_id}`}>
      <b><Text>{shortName(job.name)}</Text></b> <span class="quiet">on</span> <Text>{shortened(job.tasks)}</Text>
      {backend && <small class="one-line" title={plain(backend)}><Text>{backend}</Text></small>}
    </a>
  );
}

/** Scores of a finished evaluation, how far a running one is, or why there is neither. */
function Numbers({ job }: { job: JobEntry }) {
  if (job.state === "running") return <Progress job={job} />;
  const shown = job.headlines.filter((row) => row.value !== null);
  if (!shown.length) return <span class={`job-numbers ${job.reason ? "problem" : "quiet"}`}>{job.reason ? <Reason text={job.reason} /> : job.state === "queued" ? "" : "no score"}</span>;
  return (
    <span class="job-numbers">
      {shown.map((row) => <Headline key={`${row.task} ${row.metric}`} row={row} />)}
      {job.headlines_left_out > 0 && <small>and {count(job.headlines_left_out)} more</small>}
      {job.reason && <span class="problem"><Reason text={job.reason} /></span>}
    </span>
  );
}

const Reason = ({ text }: { text: string }) => <span class="one-line" title={plain(text)}><Text>{text}</Text></span>;

function Headline({ row }: { row: ResultRow }) {
  const { value, low, high } = row;
  return (
    <span class="job-headline">
      <b class={isLarge(value ?? 0) ? "large" : ""}>{figure(value ?? 0)}</b>
      <small class="interval" title="95 % interval">{low !== null && high !== null && `${figure(low)} – ${figure(high)}`}</small>
      <small class="one-line" title={plain(`${row.task} · ${row.metric}`)}><Text>{`${row.task} · ${row.metric}`}</Text></small>
    </span>
  );
}

function Progress({ job }: { job: JobEntry }) {
  const progress = job.progress;
  if (!progress?.requested) return <span class="job-numbers quiet">starting …</span>;
  return (
    <span class="job-numbers">
      <progress value={progress.done} max={progress.requested} aria-label={`Documents of ${plain(job.name)}`} />
      <small>
        {done(progress)} documents
        {progress.seconds_left !== null && ` · ${left(progress.seconds_left)} left`}
        {progress.failed > 0 && <span class="problem"> · {count(progress.failed)} failed</span>}
      </small>
    </span>
  );
}

const shortened = (tasks: string[]): string =>
  tasks.length > MOST_TASKS ? `${tasks.slice(0, MOST_TASKS).join(", ")} and ${tasks.length - MOST_TASKS} more` : tasks.join(", ");
