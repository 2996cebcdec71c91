// A run while it goes on: how far it is, how fast, its running scores, what fails, what the machine does.
import type { ComponentChildren } from "preact";

import { Score, Section, SortedTable, type Column } from "./common";
import { address } from "./route";
import { count, number, seconds, Text } from "./text";
import type { Live, LiveScore, LiveTask, RunEntry } from "./types";

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
        {live.is_going && live.seconds_left !== null && ` · ${seconds(live.seconds_left)} left`}
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
    <Section title={live.is_going ? "Live" : "So far"} id="live">
      <Bar live={live} label={`${doneOf(live)} documents done`} />
      {!live.is_read && <p class="quiet">What the journals hold already is being read.</p>}
      <Figures live={live} />
      <Scores run={run} live={live} />
      <Reasons live={live} />
    </Section>
  );
}

function Figures({ live }: { live: Live }) {
  const memory = live.processes.reduce((sum, one) => sum + (one.memory ?? 0), 0);
  return (
    <dl class="figures">
      <Figure name="Documents" value={doneOf(live)}>
        {live.failed > 0 && `${count(live.failed)} failed`} {live.unscored > 0 && `${count(live.unscored)} unscored`}
      </Figure>
      {live.is_going && (
        <>
          <Figure name="Documents a second" value={rate(live.rate ?? live.rate_overall)}>
            {live.rate === null ? "since the start" : `last minute · ${rate(live.rate_overall)} since the start`}
          </Figure>
          <Figure name="Left" value={seconds(live.seconds_left)}>
            at this rate
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

interface Line extends LiveTask {
  isWhole?: boolean;
}

function Scores({ run, live }: { run: RunEntry; live: Live }) {
  const known = new Set(run.tasks.map((task) => task.name));
  const lines: Line[] = [...live.tasks];
  if (live.score) lines.unshift({ ...live, name: "The run's number", score: live.score, reason: "", isWhole: true });
  const columns: Column<Line>[] = [
    {
      name: "Task",
      value: (line) => line.name,
      cell: (line) =>
        known.has(line.name) && !line.isWhole ? (
          <a href={address([run.name, line.name])}>
            <Text>{line.name}</Text>
          </a>
        ) : (
          <Text>{line.name}</Text>
        ),
    },
    { name: "Done", class: "number", value: (line) => share(line.done, line.requested), cell: (line) => doneOf(line) },
    { name: "Failed", class: "number", value: (line) => line.failed, cell: (line) => count(line.failed) },
    {
      name: "Running score",
      title: "Over the first documents of the random order, all of which are finished; the 95 % interval for the score over all documents holds however often it is looked at",
      class: "number",
      value: (line) => line.score?.value ?? null,
      cell: (line) => <Running score={line.score} />,
    },
    {
      name: "Rests on",
      value: (line) => line.score?.n ?? null,
      cell: (line) => <Rest line={line} />,
    },
  ];
  return lines.length ? <SortedTable rows={lines} columns={columns} label="Running scores" /> : null;
}

const Running = ({ score }: { score: LiveScore | null }) => (score ? <Score cell={score} /> : <span class="quiet">–</span>);

function Rest({ line }: { line: Line }) {
  const score = line.score;
  if (!score) return <small>{line.reason && <Text>{`no interval: ${line.reason}`}</Text>}</small>;
  return (
    <small>
      {score.n === score.of ? "all documents" : `the first ${count(score.n)}`}
      {score.reason && <Text>{` · no interval: ${score.reason}`}</Text>}
    </small>
  );
}

function Reasons({ live }: { live: Live }) {
  if (!live.reasons.length) return null;
  return (
    <>
      <h3>Not scored</h3>
      <ul class="reasons">
        {live.reasons.map(([reason, times]) => (
          <li>
            <b>{number(times)}</b> × <Text>{reason}</Text>
          </li>
        ))}
      </ul>
    </>
  );
}
