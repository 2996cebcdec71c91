// A run in progress: how far it is, when it may end, its provisional scores, the latest samples, and errors by cause.
import type { ComponentChildren } from "preact";

import { cut } from "./amounts";
import { VerdictLabel } from "./cells";
import { Score, Section, SortedTable, type Column } from "./common";
import { Picture } from "./media";
import { Parted } from "./name";
import { address, ALL } from "./route";
import { verdictOf } from "./table";
import { count, number, plain, seconds, Text } from "./text";
import type { LatestSample, Live, LiveScore, LiveTask, RunEntry } from "./types";

const share = (part: number, whole: number): number => (whole > 0 ? Math.min(1, part / whole) : 0);

const bytes = (value: number): string =>
  value >= 1e9 ? `${(value / 1e9).toFixed(1)} GB` : `${Math.round(value / 1e6)} MB`;

const rate = (value: number | null): string => (value === null ? "–" : value >= 10 ? value.toFixed(0) : value.toFixed(2));

export function Bar({ live, label }: { live: { done: number; requested: number; failed: number }; label: string }) {
  const done = share(live.done - live.failed, live.requested);
  return (
    <svg class="progress" role="img" aria-label={label} viewBox="0 0 100 1" preserveAspectRatio="none">
      <rect class="done" width={100 * done} height="1" />
      <rect class="failed" x={100 * done} width={100 * share(live.failed, live.requested)} height="1" />
    </svg>
  );
}

const doneOf = (live: { done: number; requested: number }): string =>
  live.requested ? `${count(live.done)} of ${count(live.requested)}` : count(live.done);

/** What the first page says of a run that is followed. */
export function LiveLine({ live }: { live: Live }) {
  return (
    <span class="live-line">
      <Bar live={live} label={`${doneOf(live)} documents done`} />
      <small>
        {doneOf(live)}
        {live.is_going && live.seconds_left !== null && ` · ${leftOf(live.seconds_left)} left`}
      </small>
    </span>
  );
}

function Figure({ name, value, children }: { name: string; value: string; children?: ComponentChildren }) {
  return (
    <div class="figure">
      <dt>{name}</dt>
      <dd>
        <b>{value}</b>
        {children && <small>{children}</small>}
      </dd>
    </div>
  );
}

export function LiveSection({ run, live }: { run: RunEntry; live: Live }) {
  return (
    <Section title={live.is_going ? "Running" : "So far"} id="live">
      <Progress live={live} />
      {!live.is_read && <p class="quiet">Reading what the journals hold already.</p>}
      <Figures live={live} />
      <Scores run={run} live={live} />
      <div class="live-halves">
        <Latest run={run} live={live} />
        <Reasons run={run} live={live} />
      </div>
    </Section>
  );
}

/** How far the run is, what it works on, and when it may end. */
function Progress({ live }: { live: Live }) {
  const now = live.tasks.filter((task) => task.done > 0 && task.done < task.requested).map((task) => task.name);
  const percent = live.requested ? `${Math.floor(100 * share(live.done, live.requested))} %` : "";
  return (
    <>
      <p class="progress-line">
        <b>{percent}</b>
        <span>
          {doneOf(live)} documents
          {live.is_going && now.length > 0 && (
            <>
              {" · now "}
              <Parted>{now.slice(0, 2).join(", ")}</Parted>
              {now.length > 2 && ` and ${now.length - 2} more`}
            </>
          )}
        </span>
        {live.is_going && live.seconds_left !== null && (
          <span class="until">
            {leftOf(live.seconds_left)} left, until about {clock(live.seconds_left)}
          </span>
        )}
      </p>
      <Bar live={live} label={`${doneOf(live)} documents done`} />
    </>
  );
}

/** The time that is left: an estimate, in whole seconds. */
const leftOf = (left: number): string => (left < 90 ? `${Math.round(left)} s` : seconds(left));

/** The time of day at which a number of seconds will have passed. */
const clock = (left: number): string => new Date(Date.now() + 1000 * left).toTimeString().slice(0, 5);

/** The run's own number so far: that of its only task, if it has no other. */
export const wholeScore = (live: Live): LiveScore | null => live.score ?? (live.tasks.length === 1 ? (live.tasks[0]?.score ?? null) : null);

function Figures({ live }: { live: Live }) {
  const score = wholeScore(live);
  const memory = live.processes.reduce((sum, one) => sum + (one.memory ?? 0), 0);
  return (
    <dl class="figures">
      {score && (
        <Figure name={live.is_going ? "Provisional score" : "Score so far"} value={number(score.value)}>
          {score.low !== null && score.high !== null ? `${number(score.low)} – ${number(score.high)}, ` : ""}
          over {score.n === score.of ? "all documents" : `the first ${count(score.n)} of ${count(score.of)}`}
        </Figure>
      )}
      <Figure name="Documents" value={doneOf(live)}>
        {live.failed > 0 && `${count(live.failed)} failed`} {live.unscored > 0 && `${count(live.unscored)} unscored`}
      </Figure>
      {live.is_going && (
        <>
          <Figure name="Documents a second" value={rate(live.rate ?? live.rate_overall)}>
            {live.rate === null ? "since the start" : `last minute · ${rate(live.rate_overall)} since the start`}
          </Figure>
          <Figure name="In flight" value={count(live.in_flight)}>
            {live.concurrency !== null && `of at most ${count(live.concurrency)} requests`}
          </Figure>
        </>
      )}
      <Figure name="Tokens" value={count(live.tokens_in + live.tokens_out)}>
        {count(live.tokens_in)} in, {count(live.tokens_out)} out
        {live.is_going && live.token_rate !== null && ` · ${rate(live.token_rate)} a second`}
      </Figure>
      {memory > 0 && (
        <Figure name="Memory" value={bytes(memory)}>
          {live.processes.length === 1 ? "one process" : `${live.processes.length} processes`}
        </Figure>
      )}
      {live.gpus.map((gpu, place) => (
        <Figure name={live.gpus.length > 1 ? `GPU ${place}` : "GPU"} value={gpu.busy === null ? "–" : `${Math.round(100 * gpu.busy)} %`}>
          {gpu.used !== null && gpu.total !== null && `${bytes(gpu.used)} of ${bytes(gpu.total)} · `}
          <Text>{gpu.name}</Text>
        </Figure>
      ))}
    </dl>
  );
}

function Scores({ run, live }: { run: RunEntry; live: Live }) {
  const known = new Set(run.tasks.map((task) => task.name));
  const columns: Column<LiveTask>[] = [
    {
      name: "Task",
      value: (task) => task.name,
      cell: (task) =>
        known.has(task.name) ? (
          <a href={address([run.name, task.name])} aria-label={plain(task.name)}>
            <Parted>{task.name}</Parted>
          </a>
        ) : (
          <Parted>{task.name}</Parted>
        ),
    },
    {
      name: live.is_going ? "Provisional score" : "Score so far",
      title: "Over the first documents of the random order, all of which are finished; the 95 % interval for the score over all documents holds however often it is looked at",
      class: "number",
      value: (task) => task.score?.value ?? null,
      cell: (task) => <Running score={task.score} />,
    },
    {
      name: "Done",
      class: "number",
      value: (task) => share(task.done, task.requested),
      cell: (task) => (
        <span class="live-line">
          {doneOf(task)}
          <Bar live={task} label={`${doneOf(task)} documents of ${plain(task.name)} done`} />
        </span>
      ),
    },
    { name: "Failed", class: "number", value: (task) => task.failed, cell: (task) => count(task.failed) },
    {
      name: "Rests on",
      value: (task) => task.score?.n ?? null,
      cell: (task) => <Rest task={task} />,
    },
  ];
  return live.tasks.length ? <SortedTable rows={live.tasks} columns={columns} label="Running scores" /> : null;
}

const Running = ({ score }: { score: LiveScore | null }) => (score ? <Score cell={score} /> : <span class="quiet">–</span>);

function Rest({ task: { score, reason } }: { task: LiveTask }) {
  if (!score) return <small>{reason && <Text>{`no interval: ${reason}`}</Text>}</small>;
  return (
    <small>
      {score.n === score.of ? "all documents" : `the first ${count(score.n)}`}
      {score.reason && <Text>{` · no interval: ${score.reason}`}</Text>}
    </small>
  );
}

/** The samples that finished last, the newest first. */
function Latest({ run, live }: { run: RunEntry; live: Live }) {
  if (!live.latest.length) return null;
  const several = live.tasks.length > 1;
  const hasPictures = live.latest.some((sample) => sample.thumb);
  return (
    <div>
      <h3>Latest samples</h3>
      <ul class="latest">
        {live.latest.map((sample) => (
          <li key={`${sample.task}/${sample.id}`}>
            <a class={hasPictures ? "pictured" : ""} href={address([run.name, sample.task, sample.id])}>
              <Judged sample={sample} />
              {hasPictures && (
                <span>
                  <Picture src={sample.thumb} />
                </span>
              )}
              <span class="latest-id">
                <Text>{sample.id}</Text>
              </span>
              <span>
                <Text>{cut(sample.status === "failed" ? sample.reason : sample.answer, 80) || "no answer"}</Text>
                {several && (
                  <small class="line">
                    <Text>{cut(sample.task, 40)}</Text>
                  </small>
                )}
              </span>
            </a>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** With the score, if that is neither the best nor the worst one. */
function Judged({ sample: { status, score, ends } }: { sample: LatestSample }) {
  const verdict = status === "failed" || status === "unscored" ? status : verdictOf(score, ends);
  if (verdict === null) return <span>{number(score)}</span>;
  return (
    <span>
      <VerdictLabel verdict={verdict} /> {verdict === "partly" && number(score, 2)}
    </span>
  );
}

/** Errors by their cause; the samples of each are behind the link. */
function Reasons({ run, live }: { run: RunEntry; live: Live }) {
  if (!live.reasons.length) return null;
  const [only] = run.tasks;
  const to = address([run.name, run.tasks.length === 1 && only ? only.name : ALL], new URLSearchParams({ status: live.failed ? "failed" : "unscored" }));
  return (
    <div>
      <h3>
        Errors by cause <a href={to}>Show samples</a>
      </h3>
      <ul class="reasons">
        {live.reasons.map(([reason, times]) => (
          <li>
            <b>{number(times)}</b> × <Text>{reason}</Text>
          </li>
        ))}
      </ul>
    </div>
  );
}
