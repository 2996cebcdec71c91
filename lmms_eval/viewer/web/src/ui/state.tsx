// The state of an evaluation, and its end by hand.
import { useState } from "preact/hooks";

import { Text } from "../text";
import { api, type JobEntry } from "./api";

const NAMES: Record<string, string> = { queued: "waiting", completed: "done" };

export function State({ job }: { job: JobEntry }) {
  const name = job.is_stopping && job.state === "running" ? "stopping" : (NAMES[job.state] ?? job.state);
  const place = job.state !== "queued" ? "" : job.position ? `, ${job.position} before it` : ", next";
  return <span class={`badge state-${job.state}`}>{name}{place}</span>;
}

export function Stop({ job, done }: { job: JobEntry; done: () => void }) {
  const [state, set] = useState<{ asking?: boolean; error?: string }>({});
  if (job.state !== "queued" && job.state !== "running") return null;
  if (job.is_stopping) return <span class="quiet">stopping …</span>;
  const stop = async () => {
    try {
      await api.stop(job.job_id);
      set({});
    } catch (error) {
      set({ error: (error as Error).message });
    }
    done();
  };
  if (!state.asking)
    return (
      <span class="stop">
        <button onClick={() => set({ asking: true })}>{job.state === "queued" ? "Take back" : "Stop"}</button>
        {state.error && <small class="problem"><Text>{state.error}</Text></small>}
      </span>
    );
  return (
    <span class="stop" role="group" aria-label="Stop this evaluation?">
      <button class="danger" onClick={stop}>{job.state === "queued" ? "Take it back" : "Stop it"}</button>
      <button onClick={() => set({})}>{job.state === "queued" ? "Keep it" : "Keep it running"}</button>
    </span>
  );
}

export const when = (text: string): string => {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? "" : date.toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
};

export function lasted(job: JobEntry, now: number): string {
  if (!job.started_at) return "";
  const seconds = Math.max(0, ((job.completed_at ? Date.parse(job.completed_at) : now) - Date.parse(job.started_at)) / 1000);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
  return hours ? `${hours} h ${minutes} min` : minutes ? `${minutes} min ${Math.round(seconds % 60)} s` : `${Math.round(seconds)} s`;
}
