// The page on which a person scores answers that a judge has scored too. The judge's score is shown when it is asked
// for; from then on the person's own score stays as it is, so all scores are given without it.
import { useEffect, useRef, useState } from "preact/hooks";

import { Answer } from "./answers";
import { Block } from "./blocks";
import { useLoaded, Waiting } from "./common";
import { Asked } from "./conversation";
import { Help, type Keys } from "./help";
import { Judge } from "./judge";
import { useKeys } from "./keys";
import { csv, useProgress, type Change, type Progress } from "./labelled";
import { Pre, TextForm } from "./pre";
import { count, number, plain, Text } from "./text";
import { switchTheme, useTheme } from "./theme";
import type { Labels, LabelSample, Medium, Sample } from "./types";

const KEYS: Keys = [
  ["0 … 9, t", "the score whose button shows this key"],
  ["e", "type a score"],
  ["x", "clear the score"],
  ["j / k", "next, previous answer"],
  ["n", "next answer without a score"],
  ["s", "the judge's score, after yours"],
  ["m", "texts as written, or rendered"],
  ["?", "this help"],
];

export function LabelPage() {
  const { content, error } = useLoaded<Labels>("labels");
  if (!content) return <main><Waiting error={error} /></main>;
  return <Page labels={content} />;
}

function Page({ labels }: { labels: Labels }) {
  const { progress, change, isKept } = useProgress(labels.key, labels.samples.length);
  const [help, setHelp] = useState(false);
  const { at } = progress;
  const of = labels.samples.length;
  const step = (by: number) => () => change((now) => ({ at: Math.max(0, Math.min(of - 1, now.at + by)) }));
  const toOpen = () => change((now) => ({ at: nextOpen(now, of) ?? now.at }));
  useKeys({
    j: step(1),
    k: step(-1),
    n: toOpen,
    "?": () => setHelp(!help),
    Escape: () => setHelp(false),
  });
  useFocus(at, `${labels.samples[at]?.id}, ${at + 1} of ${of}`);
  const sample = labels.samples[at];
  return (
    <>
      <Top task={labels.task} help={() => setHelp(!help)} />
      <div id="content" tabIndex={-1} role="group" aria-label={plain(`Answer ${at + 1} of ${of}`)}>
        <main class="wide">
          <State labels={labels} progress={progress} isKept={isKept} />
          <nav class="steps" aria-label="Answers">
            <button disabled={at === 0} onClick={step(-1)}>
              Previous
            </button>
            <button disabled={at === of - 1} onClick={step(1)}>
              Next
            </button>
            <button disabled={nextOpen(progress, of) === undefined} onClick={toOpen}>
              Next without a score
            </button>
            <span class="quiet">
              {count(at + 1)} of {count(of)}
            </span>
            <TextForm />
          </nav>
          {sample && <Entry key={at} sample={sample} isSeen={progress.seen.includes(at)} />}
          <Rate labels={labels} progress={progress} change={change} />
        </main>
      </div>
      {help && <Help close={() => setHelp(false)} keys={KEYS} />}
    </>
  );
}

/** The next answer without a score, after the present one and then from the first. */
function nextOpen(progress: Progress, of: number): number | undefined {
  const order = Array.from({ length: of }, (_, step) => (progress.at + 1 + step) % of);
  return order.find((at) => progress.scores[at] === undefined && at !== progress.at);
}

/** Takes the focus to an answer that is shown in place of another. */
function useFocus(at: number, title: string): void {
  const before = useRef(at);
  useEffect(() => {
    document.title = plain(`${title} · lmms-eval labels`);
    if (before.current === at) return;
    before.current = at;
    window.scrollTo(0, 0);
    document.getElementById("content")?.focus({ preventScroll: true });
  }, [at, title]);
}

function Top({ task, help }: { task: string; help: () => void }) {
  const theme = useTheme();
  return (
    <header class="top">
      <nav aria-label="Where">
        <span>Labels</span>
        <span>
          <Text>{task}</Text>
        </span>
      </nav>
      <div>
        <button onClick={help}>Shortcuts</button>
        <button onClick={switchTheme} aria-label={`${theme === "dark" ? "Light" : "Dark"} colours`}>
          {theme === "dark" ? "Light" : "Dark"}
        </button>
      </div>
    </header>
  );
}

/** How many answers have a score, and what becomes of them. */
function State({ labels, progress, isKept }: { labels: Labels; progress: Progress; isKept: boolean }) {
  const of = labels.samples.length;
  const done = Object.keys(progress.scores).length;
  const save = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv(labels, progress)], { type: "text/csv" }));
    link.download = labels.file;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  return (
    <div class="labelled">
      <div>
        <p role="status">
          <b>
            {count(done)} of {count(of)}
          </b>{" "}
          answers have your score.{" "}
          <span class="quiet">{isKept ? "This browser keeps them." : "This browser keeps nothing of a page from disk: save before you close it."}</span>
        </p>
        <svg class="progress" viewBox={`0 0 ${of} 1`} preserveAspectRatio="none" aria-hidden="true">
          <rect class="done" width={done} height="1" />
        </svg>
        {done === of && (
          <p class="quiet">
            Save the file, then run <code><Text>{`${labels.command} ${labels.file}`}</Text></code>
          </p>
        )}
      </div>
      <button class="save" onClick={save}>
        Save CSV
      </button>
    </div>
  );
}

function Entry({ sample, isSeen }: { sample: LabelSample; isSeen: boolean }) {
  const shown = viewed(sample);
  return (
    <>
      <h1>
        Document <Text>{sample.id}</Text>
      </h1>
      <div class="sample">
        <div>
          <Block title="Question">
            <Asked sample={shown} shapes={[]} />
          </Block>
        </div>
        <div>
          <Block title="Answer">
            <Answer sample={shown} target="" than="" />
          </Block>
          <Block title="Reference">
            {sample.reference ? <Pre>{sample.reference}</Pre> : <p class="empty">There is no reference.</p>}
          </Block>
          {sample.questions.some((one) => one.asked) && (
            <details class="block">
              <summary>What the judge was asked</summary>
              <Judge sample={{ ...shown, lines: [{ judge: sample.questions }] }} />
            </details>
          )}
          {isSeen && <Opinion sample={sample} shown={shown} />}
        </div>
      </div>
    </>
  );
}

/** The sample as other pages have it. */
function viewed(sample: LabelSample): Sample {
  const made: [string, Medium][] = Object.entries(sample.made).map(([name, one]) => [
    name,
    typeof one === "number" ? (sample.media[one] ?? { kind: "medium", name: "" }) : one,
  ]);
  return { id: sample.id, lines: sample.lines, media: sample.media, made: Object.fromEntries(made) };
}

const Opinion = ({ sample, shown }: { sample: LabelSample; shown: Sample }) => (
  <div id="opinion">
    <Block title="Judge's score">
      <p>
        <b>{number(sample.score)}</b>
      </p>
    </Block>
    <Judge sample={{ ...shown, lines: [{ judge: sample.verdicts }] }} />
  </div>
);

/** The key of a button: the digit that the value is, else its place; `t` is ten. */
function keyOf(choices: number[], at: number): string {
  const isWhole = choices.every((one) => Number.isInteger(one) && one >= 0 && one <= 10);
  const digit = isWhole ? (choices[at] ?? 0) : at;
  return digit === 10 ? "t" : String(digit);
}

function Rate({ labels, progress, change }: { labels: Labels; progress: Progress; change: Change }) {
  const { low, high, choices } = labels;
  const { at } = progress;
  const score = progress.scores[at];
  const isSeen = progress.seen.includes(at);
  const [fault, setFault] = useState({ at, text: "" });
  const wrong = fault.at === at ? fault.text : "";
  const field = useRef<HTMLInputElement>(null);
  const give = (value: number | undefined) => {
    setFault({ at, text: "" });
    change((now) => {
      if (now.seen.includes(now.at)) return {};
      const scores = { ...now.scores };
      if (value === undefined) delete scores[now.at];
      else scores[now.at] = value;
      return { scores };
    });
  };
  const typed = (text: string) => {
    const value = Number(text);
    if (text.trim() === "") give(undefined);
    else if (!Number.isFinite(value) || value < low || value > high) setFault({ at, text: `A score is a number from ${low} to ${high}.` });
    else give(value);
  };
  const see = () => change((now) => (now.scores[now.at] === undefined || now.seen.includes(now.at) ? {} : { seen: [...now.seen, now.at] }));
  useKeys({
    ...Object.fromEntries(choices.map((value, place) => [keyOf(choices, place), () => give(value)])),
    e: () => field.current?.focus(),
    x: () => give(undefined),
    s: see,
  });
  return (
    <section class="rate" aria-label="Your score">
      <div class="bar">
        <b>Your score, {number(low)} to {number(high)}</b>
        <div class="bar" role="group" aria-label="Scores">
          {choices.map((value, place) => (
            <button aria-pressed={score === value} disabled={isSeen} onClick={() => give(value)}>
              {number(value)} {choices.length > 1 && keyOf(choices, place) !== String(value) && <kbd>{keyOf(choices, place)}</kbd>}
            </button>
          ))}
        </div>
        <label class="typed">
          {choices.length ? "or" : "Score"}{" "}
          <input
            key={at}
            ref={field}
            inputMode="decimal"
            size={6}
            disabled={isSeen}
            aria-label="Type a score"
            aria-invalid={wrong !== ""}
            value={score === undefined ? "" : String(score)}
            onChange={(event) => typed(event.currentTarget.value)}
            onKeyDown={(event) => (event.key === "Enter" || event.key === "Escape") && event.currentTarget.blur()}
          />
        </label>
        <button disabled={isSeen || score === undefined} onClick={() => give(undefined)}>
          Clear
        </button>
        <button class="see" disabled={isSeen || score === undefined} onClick={see}>
          Show the judge's score
        </button>
      </div>
      <p class={wrong ? "problem" : "quiet"} role={wrong ? "alert" : undefined}>
        {wrong || (isSeen ? "You have seen the judge's score: yours stays as it is." : "Leave empty what you cannot score. Once you see the judge's score, yours stays as it is.")}
      </p>
    </section>
  );
}

