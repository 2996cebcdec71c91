// How a score came about: each metric with the fields of its value, first those with what was parsed and compared.
import type { ComponentChildren } from "preact";

import { isObject } from "./messages";
import { MaskLine, maskOf } from "./run_lengths";
import { alone, count, Text } from "./text";
import type { Json, JsonObject } from "./types";

/** Keys of lines that are no metrics; docs/results.md describes them. */
const OWN = new Set([
  "doc_id", "target", "resps", "filtered_resps", "raw_resps", "parts", "token_counts", "doc_hash", "doc", "input",
  "input_media", "sent_media", "filter", "status", "reason", "error", "judge", "drew", "answer_reading", "finish_reason", "elapsed",
  "thoughts", "blank", "attempts", "messages", "repeats", "request_id", "arguments", "metrics", "prompt_hash", "target_hash",
]);

/** What fields of metrics' values mean, in the order in which they are shown. */
const LABELS: Record<string, string[]> = {
  Score: ["score", "scores"],
  "Parsed answer": ["extracted", "extracted_answer", "parsed", "parsed_pred", "pred", "pred_answer", "prediction", "response"],
  "Compared with": ["answer", "answers", "target", "reference", "gt", "correct_answer", "label"],
  "Deciding rule": ["rule", "step", "outcome", "method", "measure"],
  "By the fixed rule": ["fixed", "fixed_step", "strict"],
  Judge: ["judge", "verdict", "verdicts", "votes", "vote", "rating", "judged"],
  Why: ["reason", "why", "error", "note", "notes"],
};
const ORDER = Object.keys(LABELS);
const LABEL_OF = new Map(Object.entries(LABELS).flatMap(([label, names]) => names.map((name) => [name, label] as const)));

/** Whether a metric's value is a record of many fields, among them no score. */
const isRecord = (value: Json): boolean => isObject(value) && value.score === undefined && isLong(JSON.stringify(value));
const isLong = (text: string): boolean => text.length >= 400;

/** The metrics of a line, records last. */
export const metricsOf = (line: JsonObject): [string, Json][] =>
  Object.entries(line)
    .filter(([name]) => !OWN.has(name))
    .sort(([, one], [, other]) => Number(isRecord(one)) - Number(isRecord(other)));

/** The metrics of a line, under the name of its pipeline where there are several. */
export function Metrics({ line, several }: { line: JsonObject; several?: boolean }) {
  const metrics = metricsOf(line);
  if (!metrics.length) return <p class="quiet">No metric.</p>;
  return (
    <>
      {several && (
        <h3>
          <Text>{line.filter}</Text>
        </h3>
      )}
      <MetricList metrics={metrics} />
    </>
  );
}

export function MetricList({ metrics }: { metrics: [string, Json][] }) {
  const records = metrics.filter(([, value]) => isNoScore(value));
  const scores = metrics.filter((metric) => !records.includes(metric));
  return (
    <>
      <dl class="facts metrics">
        {scores.map(([name, value]) => (
          <>
            <dt>
              <Text>{name}</Text>
            </dt>
            <dd>
              <Value value={value} labelled />
            </dd>
          </>
        ))}
      </dl>
      {records.map(([name, value]) => (
        <details class="rest">
          <summary>
            <Text>{name}</Text>
          </summary>
          <Value value={value} />
        </details>
      ))}
    </>
  );
}

const rank = (name: string): number => {
  const label = LABEL_OF.get(name);
  return label === undefined ? ORDER.length : ORDER.indexOf(label);
};

/** The name of a field, and what it means where that is known. */
function Field({ name }: { name: string }) {
  const label = LABEL_OF.get(name);
  if (label === undefined || label.toLowerCase() === name) return <Text>{label ?? name}</Text>;
  return (
    <>
      {label}{" "}
      <small>
        <Text>{name}</Text>
      </small>
    </>
  );
}

/** Fields that are shown at once; the others of a metric's value are folded. */
const isLabelled = (name: string): boolean => LABEL_OF.has(name);

/** A value of JSON as a nested list of names and values. `labelled`: it is that of a metric. */
export function Value({ value, depth = 0, labelled }: { value: Json; depth?: number; labelled?: boolean }) {
  if (typeof value === "number") return <b>{alone(value)}</b>;
  if (value === null || typeof value !== "object") return <Text>{value === null ? "–" : value}</Text>;
  const mask = maskOf(value);
  if (mask) return <MaskLine mask={mask} />;
  const entries = Object.entries(value).filter(([, item]) => item !== null && item !== "");
  if (!entries.length) return <span class="quiet">none</span>;
  if (labelled && isObject(value)) return <MetricValue entries={entries} />;
  const text = JSON.stringify(value);
  const isFlat = Array.isArray(value) && entries.every(([, item]) => typeof item !== "object");
  if (depth > 3 || isFlat || (Array.isArray(value) && text.length < 80)) return isLong(text) ? <Folded title={`${count(entries.length)} entries`}>{text}</Folded> : <Text>{text}</Text>;
  return isLong(text) ? <Folded title={`${count(entries.length)} entries`}><Fields entries={entries} depth={depth} /></Folded> : <Fields entries={entries} depth={depth} />;
}

const Folded = ({ title, children }: { title: ComponentChildren; children: ComponentChildren }) => (
  <details>
    <summary>{title}</summary>
    {typeof children === "string" ? <Text>{children}</Text> : children}
  </details>
);

/** A record of the sample that is no score, such as a line of a submission. */
const isNoScore = (value: Json): boolean => isObject(value) && typeof value.score !== "number";

const Fields = ({ entries, depth, labelled }: { entries: [string, Json][]; depth: number; labelled?: boolean }) => (
  <dl class="facts inner">
    {entries.map(([name, item]) => (
      <>
        <dt>{labelled ? <Field name={name} /> : <Text>{name}</Text>}</dt>
        <dd>
          <Value value={item} depth={depth + 1} />
        </dd>
      </>
    ))}
  </dl>
);

/** The score and what it came from; the rest of the metric's fields, folded. */
function MetricValue({ entries }: { entries: [string, Json][] }) {
  const score = entries.find(([name]) => name === "score")?.[1];
  const others = entries.filter(([name]) => name !== "score").sort(([one], [other]) => rank(one) - rank(other));
  const first = others.filter(([name, item]) => isLabelled(name) && !isLong(JSON.stringify(item)));
  const rest = others.filter((entry) => !first.includes(entry));
  return (
    <>
      {score !== undefined && <Value value={score} depth={1} />}
      {first.length > 0 && <Fields entries={first} depth={0} labelled />}
      {rest.length > 0 && (
        <details class="rest">
          <summary>{score === undefined && !first.length ? `${count(rest.length)} fields` : `${count(rest.length)} more fields`}</summary>
          <Fields entries={rest} depth={0} labelled />
        </details>
      )}
    </>
  );
}
