// One sample: what was asked, what came back, and how its score came about.
import { useEffect, useMemo } from "preact/hooks";

import { Answers } from "./answers";
import { Block, Document } from "./blocks";
import { Status } from "./cells";
import { useLoaded, Waiting } from "./common";
import { Asked } from "./conversation";
import { Judge } from "./judge";
import { useKeys } from "./keys";
import { rowAddress, useColumns, useListed, useRow, type Listed } from "./listed";
import { isObject } from "./messages";
import { keepPlace } from "./places";
import { Pre, TextForm } from "./pre";
import { address, go, type Route } from "./route";
import { Metrics } from "./scores";
import { STATUSES } from "./table";
import { countsOf, tokensTold } from "./tokens";
import { count, seconds, Text, told } from "./text";
import type { Json, JsonObject, RunEntry, Sample, TaskEntry } from "./types";

export function SamplePage({ run, route }: { run: RunEntry; route: Route }) {
  const task = run.tasks.find((one) => one.name === route.task);
  const { listed, error } = useListed(run, route.task ?? "", route.params);
  const { content: row, error: unknown } = useRow(listed?.table, route.doc ?? "");
  if (!task) return <main><Waiting error={`the run ${run.name} has no task of this name`} /></main>;
  if (!listed || row === undefined) return <main><Waiting error={error ?? unknown} /></main>;
  if (row < 0) return <main><Waiting error={`the report holds no sample ${route.doc} of this task`} /></main>;
  return <Loaded key={listed.table.key} listed={listed} row={row} task={task} route={route} />;
}

function Loaded({ listed, row, task, route }: { listed: Listed; row: number; task: TaskEntry; route: Route }) {
  const { table, rows } = listed;
  const { content, error } = useLoaded<Sample[]>(`text-${task.key}-${Math.floor(row / task.per_text)}`);
  const text = content?.[row % task.per_text];
  const apart = useLoaded<Pick<Sample, "media" | "made" | "shapes">>(text?.media_apart ? `media-${task.key}-${row}` : "");
  const sample: Sample | undefined = text && text.id === route.doc ? { ...text, ...apart.content } : undefined; // a run that ends puts its rows in order
  const at = rows.indexOf(row);
  const near = rows.slice(Math.max(0, at - 1), at + 2);
  useColumns(table, ["id", "status"], near.includes(row) ? near : [row]);
  const step = (by: number): string | undefined => {
    const next = rows[at + by];
    return at < 0 || next === undefined ? undefined : rowAddress(table, next, route.params);
  };
  const back = address([route.run, route.task], route.params);
  return (
    <main class="wide">
      <Steps back={back} step={step} at={at} of={rows.length} />
      <h1>
        <Text>{route.doc}</Text>
      </h1>
      {sample ? <SampleView key={row} sample={sample} status={table.status(row)} /> : <Waiting error={error} />}
    </main>
  );
}

/** The way through a list of samples, by links and by keys. */
export function Steps({ back, step, at, of }: { back: string; step: (by: number) => string | undefined; at: number; of: number }) {
  const to = (target: string | undefined) => () => target && go(target);
  useKeys({ j: to(step(1)), k: to(step(-1)), Escape: to(back), u: to(back) });
  useEffect(() => {
    if (at >= 0) keepPlace(back, { selected: at });
  }, [back, at]);
  return (
    <nav class="steps" aria-label="Samples">
      <a href={back}>List</a>
      <Step to={step(-1)} name="Previous" />
      <Step to={step(1)} name="Next" />
      {at >= 0 && (
        <span class="quiet">
          {count(at + 1)} of {count(of)}
        </span>
      )}
      <TextForm />
    </nav>
  );
}

const Step = ({ to, name }: { to?: string; name: string }) =>
  to ? <a href={to}>{name}</a> : <span class="quiet">{name}</span>;

function SampleView({ sample, status }: { sample: Sample; status: number }) {
  const line = sample.lines[0] ?? {};
  return (
    <>
      <p class="quiet">
        <Status status={status} /> <Facts line={line} />
      </p>
      <div class="sample">
        <div>
          <Block title={hasRounds(line.messages) ? "Conversation" : "Prompt"}>
            <Asked sample={sample} shapes={sample.shapes ?? []} />
          </Block>
          <Document doc={line.doc} />
        </div>
        <div>
          {(line.error || line.reason) && (
            <Block title={STATUSES[status] === "failed" ? "Why it failed" : "Why it has no score"}>
              <Pre grave>{told(line.error) || told(line.reason)}</Pre>
            </Block>
          )}
          <Answers sample={sample} line={line} />
          {sample.lines.length < 2 && STATUSES[status] !== "failed" && (
            <Block title="Scores">
              <Metrics line={line} />
            </Block>
          )}
          <Judge sample={sample} />
          <Raw sample={sample} />
        </div>
      </div>
    </>
  );
}

const hasRounds = (messages: Json | undefined): boolean =>
  Array.isArray(messages) && messages.flat().some((one) => isObject(one) && (one.round !== undefined || one.role === "tool"));

function Facts({ line }: { line: JsonObject }) {
  const elapsed = ([] as Json[]).concat(line.elapsed ?? []).filter((one) => typeof one === "number");
  const facts = [
    Array.isArray(line.repeats) ? `${line.repeats.length} repeats` : "",
    line.blank ? `no answer: ${told(line.blank)}` : "",
    line.finish_reason ? `finish: ${told(line.finish_reason)}` : "",
    elapsed.length ? seconds(elapsed.reduce((all, one) => all + one, 0)) : "",
    tokensTold(countsOf(line)),
    line.attempts ? `sent ${told(line.attempts)} times` : "",
    isObject(line.answer_reading) && line.answer_reading.rule ? `read by: ${told(line.answer_reading.rule)}` : "",
    line.drew ? "scoring drew at random" : "",
  ];
  return <Text>{facts.filter(Boolean).join(" · ")}</Text>;
}

function Raw({ sample }: { sample: Sample }) {
  const text = useMemo(() => JSON.stringify(sample.lines.length === 1 ? sample.lines[0] : sample.lines, null, 2), [sample]);
  const download = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = "sample.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  return (
    <details class="block">
      <summary>Raw JSON</summary>
      <p>
        <button onClick={download}>Download</button>
      </p>
      <Pre exact>{text}</Pre>
    </details>
  );
}
