// All evaluations of this server: those that run and wait, and those that have ended, to be compared.
import { useState } from "preact/hooks";

import { Waiting } from "../waiting";
import { plain, Text } from "../text";
import { api, type JobEntry } from "./api";
import { MakePages } from "./pages";
import { State, Stop, when } from "./state";
import { useAsked } from "./store";

const EVERY_MS = 2000;

export function JobsPage() {
  const { content, error, again } = useAsked("jobs", api.jobs, EVERY_MS);
  const [chosen, choose] = useState<string[]>([]);
  if (!content) return <main><Waiting error={error} /></main>;
  const open = content.jobs.filter((one) => one.state === "queued" || one.state === "running");
  const ended = content.jobs.filter((one) => !open.includes(one)).reverse();
  const comparable = chosen.filter((id) => ended.some((one) => one.job_id === id && one.state === "completed"));
  const toggle = (id: string) => choose(chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen, id]);
  return (
    <main>
      <h1>Evaluations</h1>
      {error && <p class="problem" role="alert"><Text>{error}</Text></p>}
      <h2>Running and waiting</h2>
      {open.length ? <Entries jobs={open} again={again} /> : <p class="empty">Nothing runs. <a href="#/">Start an evaluation</a></p>}
      <h2>Finished</h2>
      {ended.length ? (
        <>
          <Entries jobs={ended} chosen={chosen} toggle={toggle} />
          <div class="bar compare-bar">
            <MakePages jobs={comparable} address="#/:compare" disabled={comparable.length < 2}>
              Compare {comparable.length > 1 ? `${comparable.length} runs` : "chosen runs"}
            </MakePages>
            {comparable.length < 2 && <small>Choose two or more completed evaluations.</small>}
          </div>
        </>
      ) : (
        <p class="empty">None yet.</p>
      )}
    </main>
  );
}

interface EntriesProps {
  jobs: JobEntry[];
  chosen?: string[];
  toggle?: (id: string) => void;
  again?: () => void;
}

function Entries({ jobs, chosen, toggle, again }: EntriesProps) {
  return (
    <ul class="jobs">
      {jobs.map((one) => (
        <li key={one.job_id}>
          {toggle && (
            <input
              type="checkbox"
              aria-label={`Compare ${plain(one.model)} on ${plain(one.tasks.join(", "))}, ${when(one.created_at)}`}
              disabled={one.state !== "completed"}
              checked={chosen?.includes(one.job_id)}
              onChange={() => toggle(one.job_id)}
            />
          )}
          <a href={`#/job/${one.job_id}`}>
            <b><Text>{one.model}</Text></b> <span class="quiet">on</span> <Text>{shortened(one.tasks)}</Text>
            <small><Text>{one.model_args}</Text></small>
          </a>
          <State job={one} />
          <time>{when(one.completed_at ?? one.started_at ?? one.created_at)}</time>
          {again && <Stop job={one} done={again} />}
        </li>
      ))}
    </ul>
  );
}

const shortened = (tasks: string[]): string =>
  tasks.length > 3 ? `${tasks.slice(0, 3).join(", ")} and ${tasks.length - 3} more` : tasks.join(", ");
