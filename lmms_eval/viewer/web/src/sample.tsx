// One sample: what was asked, what came back, and how its score came about.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { Answers } from "./answers";
import { Block, Document } from "./blocks";
import { Dot, metricName, toneOf, verdictText } from "./cells";
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
import { Headline, STATUSES } from "./table";
import { countsOf, tokensTold } from "./tokens";
import { alone, count, plain, seconds, Text, told } from "./text";
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
  const { params } = route;
  const { content, error } = useLoaded<Sample[]>(`text-${task.key}-${Math.floor(row / task.per_text)}`);
  const text = content?.[row % task.per_text];
  const apart = useLoaded<Pick<Sample, "media" | "made" | "shapes">>(text?.media_apart ? `media-${task.key}-${row}` : "");
  const sample: Sample | undefined = text && text.id === route.doc ? { ...text, ...apart.content } : undefined; // a run that ends puts its rows in order
  const at = rows.indexOf(row);
  const near = rows.slice(Math.max(0, at - 1), at + 2);
  const headline = useMemo(() => new Headline(table, params), [table, params.toString()]);
  useColumns(table, ["id", "status", ...headline.columns], near.includes(row) ? near : [row]);
  const step = (by: number): string | undefined => {
    const next = rows[at + by];
    return at < 0 || next === undefined ? undefined : rowAddress(table, next, params);
  };
  const back = address([route.run, route.task], params);
  const wrong = useWrong(listed, headline, at, params);
  return (
    <main class="wide">
      <header class="status">
        <Steps back={back} step={step} at={at} of={rows.length} wrong={wrong} isBrief />
        <Title headline={headline} row={row} id={route.doc ?? ""} line={sample?.lines[0] ?? {}} />
      </header>
      {sample ? <SampleView key={row} sample={sample} status={table.status(row)} /> : <Waiting error={error} />}
    </main>
  );
}

/** What came of the sample, and which one it is. */
function Title({ headline, row, id, line }: { headline: Headline; row: number; id: string; line: JsonObject }) {
  const verdict = headline.verdict(row);
  const score = headline.at(row);
  const ends = headline.endsOf(row);
  const reason = verdict === "failed" || verdict === "unscored" ? told(line.error) || told(line.reason) : "";
  const question = questionOf(line);
  return (
    <div class="outcome">
      <p>
        <span class={`pill ${toneOf(verdict)}`}>{verdictText(verdict, score, ends)}</span>{" "}
        {score !== null && (
          <span class="headline">
            <Text>{metricName(headline.key(row).slice(2))}</Text> <b>{alone(score, 4)}</b>
          </span>
        )}
      </p>
      <h1>
        <Text>{id}</Text>{" "}
        {question && (
          <span class="question" title={plain(question)}>
            <Text>{question}</Text>
          </span>
        )}
      </h1>
      {reason && (
        <p class="reason" title={plain(reason)}>
          <Text>{reason.split("\n")[0]}</Text>
        </p>
      )}
    </div>
  );
}

const QUESTIONS = ["question", "query", "prompt", "instruction", "problem", "text"];
const MARK = /<(?:image|video|audio)(?:[ _-]?\d{1,4})?>/g;
const LONGEST_QUESTION = 200;

/** A line of what was asked: the document's question, else that of the prompt, else the first line of the prompt. */
function questionOf(line: JsonObject): string {
  const doc = isObject(line.doc) ? line.doc : {};
  const stated = QUESTIONS.map((name) => doc[name]).find((value) => typeof value === "string" && value.trim() !== "");
  const lines = (typeof stated === "string" ? stated : told(line.input)).replace(MARK, " ").split("\n").map((one) => one.trim());
  const marked = lines.find((one) => /^question\s*:\s*\S/i.test(one))?.replace(/^question\s*:\s*/i, "");
  return (marked ?? lines.find((one) => one !== "") ?? "").slice(0, LONGEST_QUESTION);
}

export interface WrongSteps {
  /** Goes to the next or the previous wrong answer of the list. */
  go: (by: 1 | -1) => void;
  /** Which way there is none, once that is known. */
  none: 1 | -1 | 0;
}

/** Rows whose verdicts are loaded at once on the way to the next wrong answer. */
const LOOK = 2000;

/** The way to wrong answers; nothing where no answer of the list can be wrong. */
function useWrong({ table, rows }: Listed, headline: Headline, at: number, params: URLSearchParams): WrongSteps | undefined {
  const [known, tell] = useState<{ at: number; none: 1 | -1 }>();
  const looking = useRef(false);
  const walk = async (by: 1 | -1): Promise<void> => {
    const columns = ["status", ...headline.columns].flatMap((key) => table.columns.get(key) ?? []);
    for (let place = at + by; place >= 0 && place < rows.length; place += by * LOOK) {
      const ahead = by > 0 ? rows.slice(place, place + LOOK) : rows.slice(Math.max(0, place - LOOK + 1), place + 1).reverse();
      await Promise.all(columns.map((column) => column.load(ahead)));
      const row = ahead.find((one) => headline.verdict(one) === "wrong");
      if (row === undefined) continue;
      await table.columns.get("id")?.load([row]);
      return go(rowAddress(table, row, params));
    }
    tell({ at, none: by });
  };
  if (at < 0 || !headline.counts().get("wrong")) return undefined;
  return {
    none: known?.at === at ? known.none : 0,
    go: (by) => {
      if (looking.current) return;
      looking.current = true;
      void walk(by).finally(() => (looking.current = false));
    },
  };
}

interface StepsProps {
  back: string;
  step: (by: number) => string | undefined;
  at: number;
  of: number;
  wrong?: WrongSteps;
  /** Without the choice of the texts' form. */
  isBrief?: boolean;
}

/** The way through a list of samples, by links and by keys. */
export function Steps({ back, step, at, of, wrong, isBrief }: StepsProps) {
  const to = (target: string | undefined) => () => target && go(target);
  useKeys({ j: to(step(1)), k: to(step(-1)), J: () => wrong?.go(1), K: () => wrong?.go(-1), Escape: to(back), u: to(back) });
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
      {wrong && <WrongButtons wrong={wrong} />}
      {!isBrief && <TextForm />}
    </nav>
  );
}

function WrongButtons({ wrong }: { wrong: WrongSteps }) {
  return (
    <span class="wrongs" role="group" aria-label="Wrong answers">
      <button disabled={wrong.none === -1} title="Previous wrong answer (K)" onClick={() => wrong.go(-1)}>
        <span class="short" aria-hidden="true">
          ↑
        </span>
        <span class="whole">Previous wrong</span>
      </button>
      <button disabled={wrong.none === 1} title="Next wrong answer (J)" onClick={() => wrong.go(1)}>
        <Dot verdict="wrong" /> Next wrong
      </button>
      <span class="unseen" role="status">
        {wrong.none === 1 ? "No wrong answer after this one" : wrong.none === -1 ? "No wrong answer before this one" : ""}
      </span>
    </span>
  );
}

const Step = ({ to, name }: { to?: string; name: string }) =>
  to ? <a href={to}>{name}</a> : <span class="quiet">{name}</span>;

/** Whether the line of the header does not hold all of a reason. */
const isLongReason = (reason: string): boolean => reason.length > 120 || reason.trim().includes("\n");

function SampleView({ sample, status }: { sample: Sample; status: number }) {
  const line = sample.lines[0] ?? {};
  return (
    <>
      <div class="facts-line">
        <Facts line={line} />
        <TextForm />
      </div>
      <div class="sample">
        <div>
          <Block title={hasRounds(line.messages) ? "Conversation" : "Prompt"} role={hasRounds(line.messages) ? undefined : "user"}>
            <Asked sample={sample} shapes={sample.shapes ?? []} />
          </Block>
          <Document doc={line.doc} />
        </div>
        <div>
          {isLongReason(told(line.error) || told(line.reason)) && (
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
    isObject(line.answer_reading) && line.answer_reading.rule ? `parsed by: ${told(line.answer_reading.rule)}` : "",
    line.drew ? "scored by a random guess" : "",
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
