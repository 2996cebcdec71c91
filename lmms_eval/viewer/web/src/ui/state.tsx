// The state of an evaluation, its numbers in short, and its end by hand.
import { useEffect, useRef, useState } from "preact/hooks";

import { count, seconds, Text } from "../text";
import { api, type JobEntry, type State as StateName } from "./api";

type Stated = Pick<JobEntry, "job_id" | "state" | "position" | "is_stopping">;

const NAMES: Partial<Record<StateName, string>> = { completed: "finished" };

export function State({ job }: { job: Stated }) {
  const name = job.is_stopping && job.state === "running" ? "stopping" : (NAMES[job.state] ?? job.state);
  const place = job.state !== "queued" ? "" : job.position ? ` · ${job.position} ahead` : " · next";
  return (
    <span class={`state state-${job.state}`}>
      {name}
      {place}
    </span>
  );
}

/** Asks before it stops. The focus moves to the question and back, so that keys go on where they were. */
export function Stop({ job, done }: { job: Stated; done: () => void }) {
  const [state, set] = useState<{ asking?: boolean; error?: string }>({});
  const button = useRef<HTMLButtonElement>(null);
  const wasAsking = useRef(false);
  useEffect(() => {
    if (state.asking || wasAsking.current) button.current?.focus();
    wasAsking.current = Boolean(state.asking);
  }, [state.asking]);
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
  const isQueued = job.state === "queued";
  if (!state.asking)
    return (
      <span class="stop">
        <button ref={button} onClick={() => set({ asking: true })}>{isQueued ? "Cancel" : "Stop"}</button>
        {state.error && <small class="problem"><Text>{state.error}</Text></small>}
      </span>
    );
  return (
    <span class="stop" role="group" aria-label={isQueued ? "Cancel this evaluation?" : "Stop this evaluation?"}>
      <button class="danger" ref={button} onClick={stop}>{isQueued ? "Cancel it" : "Stop it"}</button>
      <button onClick={() => set({})}>{isQueued ? "Keep it" : "Keep it running"}</button>
    </span>
  );
}

export const isLarge = (value: number): boolean => Math.abs(value) >= 10;

/** Numbers of one size have as many decimals, so that a column of them is aligned. */
export const figure = (value: number): string => value.toFixed(isLarge(value) ? 2 : 4);

export const done = ({ done, requested }: { done: number; requested: number }): string =>
  requested ? `${count(done)} of ${count(requested)}` : count(done);

/** An estimate, which no fraction of a second improves. */
export const left = (value: number): string => (value < 90 ? `${Math.max(1, Math.round(value))} s` : seconds(value));

/** The last part of a name that is a path of this machine. */
export const shortName = (name: string): string => (/^[.~]?[/\\]/.test(name) ? (name.split(/[/\\]/).filter(Boolean).at(-1) ?? name) : name);

export const when = (text: string): string => {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? "" : date.toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
};

export function lasted(job: Pick<JobEntry, "started_at" | "completed_at">, now: number): string {
  if (!job.started_at) return "";
  const seconds = Math.max(0, ((job.completed_at ? Date.parse(job.completed_at) : now) - Date.parse(job.started_at)) / 1000);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
  return hours ? `${hours} h ${minutes} min` : minutes ? `${minutes} min ${Math.round(seconds % 60)} s` : `${Math.round(seconds)} s`;
}
