// What came back: the parsed answer and the reference, filter pipelines and repeats side by side.
import { diffArrays } from "diff";
import { useMemo } from "preact/hooks";

import { Box } from "./box";
import { MediumView } from "./media";
import { isObject } from "./messages";
import { tokensTold } from "./tokens";
import { Pre, useRendered } from "./pre";
import { Block } from "./blocks";
import { Metrics, MetricList } from "./scores";
import { MaskText, masksIn } from "./run_lengths";
import { count, seconds, Text, told } from "./text";
import type { Json, JsonObject, Medium, Sample } from "./types";
import { piecesOf } from "./words";

export function Answers({ sample, line }: { sample: Sample; line: JsonObject }) {
  const raw = line.resps === undefined ? undefined : told(line.resps);
  const target = told(line.target);
  const several = sample.lines.length > 1;
  const failed = line.filtered_resps === undefined && line.raw_resps === undefined;
  return (
    <>
      {several ? (
        <Pipelines sample={sample} target={target} />
      ) : (
        !failed && (
          <Block title="Answer" role="assistant">
            <Answer sample={sample} target={target} than="the reference" />
          </Block>
        )
      )}
      {line.target !== undefined && (
        <Block title="Reference">{masksIn(target) ? <MaskText text={target} /> : <Pre>{target}</Pre>}</Block>
      )}
      {!Array.isArray(line.repeats) && <Thoughts value={line.thoughts} />}
      {raw !== undefined && !Array.isArray(line.repeats) && raw !== told(line.filtered_resps) && (
        <Block title="Raw answer">{masksIn(raw) ? <MaskText text={raw} /> : <Pre>{raw}</Pre>}</Block>
      )}
      <Repeats sample={sample} line={line} />
    </>
  );
}

/** The thoughts before the answer, folded; of several rounds one after the other. */
function Thoughts({ value }: { value: Json | undefined }) {
  const rounds = ([] as Json[]).concat(value ?? []).filter((one) => typeof one === "string" && one !== "");
  if (!rounds.length) return null;
  const length = rounds.reduce((all: number, one) => all + told(one).length, 0);
  return (
    <details class="block thoughts">
      <summary>Thoughts ({count(length)} characters)</summary>
      {rounds.map((one) => (
        <Pre>{told(one)}</Pre>
      ))}
    </details>
  );
}

/** Each filter pipeline with what it read and what it scored. */
function Pipelines({ sample, target }: { sample: Sample; target: string }) {
  return (
    <Block title={`${sample.lines.length} filter pipelines`}>
      <div class="sides pipelines">
        {sample.lines.map((line) => (
          <section class="side">
            <h3>
              <Text>{told(line.filter) || "unnamed"}</Text>
            </h3>
            <Answer sample={{ ...sample, lines: [line] }} target={target} than="the reference" />
            {(line.reason || line.error) && <Pre grave>{told(line.reason) || told(line.error)}</Pre>}
            <Metrics line={line} />
          </section>
        ))}
      </div>
    </Block>
  );
}

/** Each answer with what it scored alone, through each pipeline, and what it took. */
function Repeats({ sample, line }: { sample: Sample; line: JsonObject }) {
  const said = Array.isArray(line.raw_resps) && line.raw_resps.length > 1 ? line.raw_resps : [];
  if (!said.length) return null;
  return (
    <Block title={`${said.length} repeats`}>
      <div class="sides repeats">
        {said.map((answer, at) => (
          <section class="side">
            <h3>Repeat {at + 1}</h3>
            <Thoughts value={entry(line.thoughts, at)} />
            {Array.isArray(answer) && answer.length > 1 ? <Rounds values={answer} /> : <Pre>{told(answer)}</Pre>}
            {sample.lines.map((one) => (
              <Alone line={one} at={at} several={sample.lines.length > 1} />
            ))}
            <p class="quiet">
              <Text>{taken(line, at)}</Text>
            </p>
          </section>
        ))}
      </div>
    </Block>
  );
}

/** The scores of one answer alone through one pipeline. */
function Alone({ line, at, several }: { line: JsonObject; at: number; several: boolean }) {
  const own = entry(line.repeats, at);
  if (!isObject(own) || !isObject(own.metrics)) return null;
  return (
    <>
      {several && (
        <h4>
          <Text>{told(line.filter)}</Text>
        </h4>
      )}
      <MetricList metrics={Object.entries(own.metrics)} />
    </>
  );
}

const entry = (values: Json | undefined, at: number): Json | undefined => (Array.isArray(values) ? values[at] : undefined);

/** Tokens, seconds and end of one of several answers. */
function taken(line: JsonObject, at: number): string {
  const own = entry(line.repeats, at);
  const elapsed = entry(line.elapsed, at);
  const facts = [
    tokensTold(isObject(own) ? own.token_counts : undefined),
    typeof elapsed === "number" ? seconds(elapsed) : "",
    told(entry(line.blank, at)) && `no answer: ${told(entry(line.blank, at))}`,
    told(entry(line.finish_reason, at)) && `finish: ${told(entry(line.finish_reason, at))}`,
  ];
  return facts.filter(Boolean).join(" · ");
}

/** The parsed answer, with the words and numbers marked by which it differs from the target. */
export function Answer({ sample, target, than }: { sample: Sample; target: string; than: string }) {
  const line = sample.lines[0] ?? {};
  return (
    <>
      <Parts parts={line.parts} made={sample.made ?? {}} />
      {Array.isArray(line.filtered_resps) && line.filtered_resps.length > 1 ? (
        <Rounds values={line.filtered_resps} />
      ) : (
        // Numbers of boxes and masks say nothing word by word: they are drawn.
        !line.parts && <Compared answer={told(line.filtered_resps)} target={sample.shapes?.length ? "" : target} than={than} />
      )}
    </>
  );
}

const Rounds = ({ values }: { values: Json[] }) => (
  <ol class="rounds">
    {values.map((value) => (
      <li>{Array.isArray(value) && value.length > 1 ? <Rounds values={value} /> : <Pre>{told(value)}</Pre>}</li>
    ))}
  </ol>
);

const LONGEST = 4000;

function Compared({ answer, target, than }: { answer: string; target: string; than: string }) {
  const rendered = useRendered();
  const pieces = useMemo(() => (target && answer.length + target.length < LONGEST ? diffArrays(piecesOf(target), piecesOf(answer)) : []), [answer, target]);
  const common = pieces.some((piece) => !piece.added && !piece.removed && /[\p{L}\p{N}]/u.test(piece.value.join("")));
  if (answer === "") return <p class="empty">The answer is empty.</p>;
  if (masksIn(answer)) return <MaskText text={answer} />;
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
        const text = <Text>{piece.value.join("")}</Text>;
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
