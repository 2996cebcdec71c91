// One sample: what was asked, what came back, and how its score came about.
import { diffWords } from "diff";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";

import { Box } from "./box";
import { useLoaded, Waiting } from "./common";
import { MediumView, Shapes } from "./media";
import { Pre, TextForm, useRendered } from "./pre";
import { address, go, type Route } from "./route";
import { Status } from "./cells";
import { useKeys } from "./keys";
import { rowAddress, useColumns, useListed, useRow, type Listed } from "./listed";
import { STATUSES } from "./table";
import { count, number, seconds, Text, told } from "./text";
import type { Json, JsonObject, Medium, RunEntry, Sample, Shape, TaskEntry } from "./types";

/** Keys of lines that are no metrics; docs/results.md tells what they hold. */
const OWN = new Set([
  "doc_id", "target", "resps", "filtered_resps", "raw_resps", "parts", "token_counts", "doc_hash", "doc", "input",
  "input_media", "sent_media", "filter", "status", "reason", "error", "judge", "drew", "finish_reason", "elapsed",
  "attempts", "messages", "request_id", "arguments", "metrics", "prompt_hash", "target_hash",
]);

export function SamplePage({ run, route }: { run: RunEntry; route: Route }) {
  const task = run.tasks.find((one) => one.name === route.task);
  const { listed, error } = useListed(run, route.task ?? "", route.params);
  const { content: row, error: unknown } = useRow(listed?.table, route.doc ?? "");
  if (!task) return <main><Waiting error={`the run ${run.name} has no task of this name`} /></main>;
  if (!listed || row === undefined) return <main><Waiting error={error ?? unknown} /></main>;
  if (row < 0) return <main><Waiting error={`the report holds no sample ${route.doc} of this task`} /></main>;
  return <Loaded listed={listed} row={row} task={task} route={route} />;
}

function Loaded({ listed, row, task, route }: { listed: Listed; row: number; task: TaskEntry; route: Route }) {
  const { table, rows } = listed;
  const { content, error } = useLoaded<Sample[]>(`text-${task.key}-${Math.floor(row / task.per_text)}`);
  const sample = content?.[row % task.per_text];
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
          <Block title="Prompt">
            <Prompt text={told(line.input)} media={sample.media ?? []} shapes={sample.shapes ?? []} />
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
          <Block title="Scores">
            {sample.lines.map((one) => (
              <Metrics line={one} several={sample.lines.length > 1} />
            ))}
          </Block>
          <Judge judge={line.judge} />
          <Raw sample={sample} />
        </div>
      </div>
    </>
  );
}

function Facts({ line }: { line: JsonObject }) {
  const elapsed = ([] as Json[]).concat(line.elapsed ?? []);
  const tokens = ([] as Json[]).concat(line.token_counts ?? []).filter((one): one is JsonObject => one !== null && typeof one === "object");
  const sum = (key: string) => tokens.reduce((all, one) => all + (Number(one[key]) || 0), 0);
  const facts = [
    line.finish_reason ? `finish: ${told(line.finish_reason)}` : "",
    elapsed.length ? seconds(Number(elapsed[0])) : "",
    tokens.length ? `${count(sum("input_tokens"))} tokens in, ${count(sum("output_tokens"))} out` : "",
    sum("reasoning_tokens") ? `${count(sum("reasoning_tokens"))} of them reasoning` : "",
    line.drew ? "scoring drew at random" : "",
  ];
  return <Text>{facts.filter(Boolean).join(" · ")}</Text>;
}

export function Block({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="block">
      <h2>{title}</h2>
      {children}
    </section>
  );
}

const MARK = /<(?:image|video|audio)(?:[ _-]?\d{1,4})?>/g;

/** The prompt with its media at their marks, where there is a mark for each; else the media come first. */
export function Prompt({ text, media, shapes }: { text: string; media: Medium[]; shapes: Shape[] }) {
  const marks = [...text.matchAll(MARK)];
  const view = (medium: Medium, place: number) => (
    <MediumView medium={medium}>{shapes.length > 0 && place === media.length - 1 && <Shapes shapes={shapes} />}</MediumView>
  );
  const legend = shapes.length > 0 && (
    <p class="quiet">
      Over the last picture: <span class="reference">reference</span>, <span class="answer">answer (dashed)</span>.
    </p>
  );
  if (!media.length) return <Pre>{text}</Pre>;
  if (marks.length !== media.length)
    return (
      <>
        <div class="media">
          {media.map(view)}
        </div>
        {legend}
        {text && <Pre>{text}</Pre>}
      </>
    );
  const pieces: ComponentChildren[] = [];
  let end = 0;
  marks.forEach((mark, place) => {
    const before = text.slice(end, mark.index).trim();
    if (before) pieces.push(<Pre>{before}</Pre>);
    pieces.push(view(media[place] as Medium, place));
    end = mark.index + mark[0].length;
  });
  const rest = text.slice(end).trim();
  if (rest) pieces.push(<Pre>{rest}</Pre>);
  return (
    <div class="messages">
      {pieces}
      {legend}
    </div>
  );
}

function Answers({ sample, line }: { sample: Sample; line: JsonObject }) {
  const parsed = told(line.filtered_resps);
  const raw = line.resps === undefined ? undefined : told(line.resps);
  const target = told(line.target);
  const repeats = Array.isArray(line.raw_resps) && line.raw_resps.length > 1 ? line.raw_resps : [];
  return (
    <>
      <Block title="Answer">
        <Answer sample={sample} target={target} than="the reference" />
      </Block>
      <Block title="Reference">
        <Pre>{target}</Pre>
      </Block>
      {raw !== undefined && raw !== parsed && (
        <Block title="Raw answer">
          <Pre>{raw}</Pre>
        </Block>
      )}
      {repeats.length > 0 && (
        <Block title={`${repeats.length} repeats`}>
          <div class="repeats">
            {repeats.map((one) => (
              <Pre>{told(one)}</Pre>
            ))}
          </div>
        </Block>
      )}
    </>
  );
}

/** The parsed answer, with the words marked that the target does not have. */
export function Answer({ sample, target, than }: { sample: Sample; target: string; than: string }) {
  const line = sample.lines[0] ?? {};
  return (
    <>
      <Parts parts={line.parts} made={sample.made ?? {}} />
      {Array.isArray(line.filtered_resps) && line.filtered_resps.length > 1 ? (
        <Rounds values={line.filtered_resps} />
      ) : (
        !line.parts && <Compared answer={told(line.filtered_resps)} target={target} than={than} />
      )}
    </>
  );
}

const Rounds = ({ values }: { values: Json[] }) => (
  <ol class="rounds">
    {values.map((value) => (
      <li>
        <Pre>{told(value)}</Pre>
      </li>
    ))}
  </ol>
);

const LONGEST = 4000;

function Compared({ answer, target, than }: { answer: string; target: string; than: string }) {
  const rendered = useRendered();
  const pieces = useMemo(() => (target && answer.length + target.length < LONGEST ? diffWords(target, answer) : []), [answer, target]);
  const common = pieces.some((piece) => !piece.added && !piece.removed && piece.value.trim());
  if (answer === "") return <p class="empty">The answer is empty.</p>;
  if (!common || answer === target || rendered)
    return (
      <>
        <Pre>{answer}</Pre>
        {answer === target && (
          <p class="quiet">
            The same text as <Text>{than}</Text>.
          </p>
        )}
      </>
    );
  return (
    <Box>
      {pieces.map((piece) => {
        const text = <Text>{piece.value}</Text>;
        return piece.added ? <ins>{text}</ins> : piece.removed ? <del>{text}</del> : text;
      })}
    </Box>
  );
}

function Parts({ parts, made }: { parts: Json | undefined; made: Record<string, Medium> }) {
  if (!Array.isArray(parts)) return null;
  return (
    <div class="messages">
      {parts.map((part) => {
        if (Array.isArray(part)) return <Parts parts={part} made={made} />;
        if (part === null || typeof part !== "object") return null;
        const path = told(part.path);
        if (part.type !== "image") return <Pre>{told(part.text)}</Pre>;
        return <MediumView medium={(Object.hasOwn(made, path) ? made[path] : undefined) ?? { kind: "image", name: path }} />;
      })}
    </div>
  );
}

export function Metrics({ line, several }: { line: JsonObject; several: boolean }) {
  const metrics = Object.entries(line).filter(([name]) => !OWN.has(name));
  if (!metrics.length) return <p class="quiet">No metric.</p>;
  return (
    <>
      {several && (
        <h3>
          <Text>{line.filter}</Text>
        </h3>
      )}
      <dl class="facts">
        {metrics.map(([name, value]) => (
          <>
            <dt>
              <Text>{name}</Text>
            </dt>
            <dd>
              <Value value={value} />
            </dd>
          </>
        ))}
      </dl>
    </>
  );
}

/** A value of JSON as a nested list of names and values. */
function Value({ value, depth = 0 }: { value: Json; depth?: number }) {
  if (typeof value === "number") return <b>{number(value, 6)}</b>;
  if (value === null || typeof value !== "object") return <Text>{value === null ? "–" : value}</Text>;
  const entries = Object.entries(value).filter(([, item]) => item !== null && item !== "");
  const text = JSON.stringify(value);
  if (!entries.length) return <span class="quiet">none</span>;
  if (depth > 3 || (Array.isArray(value) && text.length < 80)) return <Text>{text}</Text>;
  const list = (
    <dl class="facts inner">
      {entries.map(([name, item]) => (
        <>
          <dt>
            <Text>{name}</Text>
          </dt>
          <dd>
            <Value value={item} depth={depth + 1} />
          </dd>
        </>
      ))}
    </dl>
  );
  if (text.length < 400) return list;
  const score = Array.isArray(value) ? undefined : value.score;
  return (
    <details>
      <summary>{typeof score === "number" ? <b>{number(score, 6)}</b> : `${entries.length} entries`}</summary>
      {list}
    </details>
  );
}

function Judge({ judge }: { judge: Json | undefined }) {
  if (!Array.isArray(judge) || !judge.length) return null;
  return (
    <Block title="Judge">
      {judge.map((one) => {
        if (one === null || typeof one !== "object" || Array.isArray(one)) return <Pre>{told(one)}</Pre>;
        const { text, name, accepted, prompt_text, replies, error, ...rest } = one;
        return (
          <div class="judgement">
            <h3>
              <Text>{told(name)}</Text> {accepted === false && <span class="badge grave">not readable</span>}
            </h3>
            {prompt_text !== undefined && <Pre>{told(prompt_text)}</Pre>}
            {text !== undefined && <Pre>{told(text)}</Pre>}
            {error && <Pre grave>{told(error)}</Pre>}
            {Array.isArray(replies) && replies.length > 1 && <Rounds values={replies} />}
            <Value value={rest} />
          </div>
        );
      })}
    </Block>
  );
}

export function Document({ doc }: { doc: Json | undefined }) {
  if (doc === null || typeof doc !== "object" || Array.isArray(doc)) return null;
  const fields = Object.entries(doc).filter(([, value]) => value !== null && value !== "");
  if (!fields.length) return null;
  return (
    <details class="block" open={fields.length <= 8}>
      <summary>Document</summary>
      <dl class="facts">
        {fields.map(([name, value]) => (
          <>
            <dt>
              <Text>{name}</Text>
            </dt>
            <dd>
              <Text>{told(value)}</Text>
            </dd>
          </>
        ))}
      </dl>
    </details>
  );
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
