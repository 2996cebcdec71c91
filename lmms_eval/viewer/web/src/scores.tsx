// How a score came about: each metric with the fields of its value, those first that say what was read and compared.
import { isObject } from "./messages";
import { number, Text } from "./text";
import type { Json, JsonObject } from "./types";

/** Keys of lines that are no metrics; docs/results.md tells what they hold. */
const OWN = new Set([
  "doc_id", "target", "resps", "filtered_resps", "raw_resps", "parts", "token_counts", "doc_hash", "doc", "input",
  "input_media", "sent_media", "filter", "status", "reason", "error", "judge", "drew", "answer_reading", "finish_reason", "elapsed",
  "thoughts", "blank", "attempts", "messages", "repeats", "request_id", "arguments", "metrics", "prompt_hash", "target_hash",
]);

/** What fields of metrics' values mean, in the order in which they are shown. */
const LABELS: Record<string, string[]> = {
  Score: ["score", "scores"],
  "What was read": ["extracted", "extracted_answer", "parsed", "parsed_pred", "pred", "pred_answer", "prediction", "response"],
  "Compared with": ["answer", "answers", "target", "reference", "gt", "correct_answer", "label"],
  "Rule that decided": ["rule", "step", "outcome", "method", "measure"],
  "By the mended rule": ["fixed", "fixed_step", "strict"],
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

export const MetricList = ({ metrics }: { metrics: [string, Json][] }) => (
  <dl class="facts">
    {metrics.map(([name, value]) => (
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
);

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

/** A value of JSON as a nested list of names and values. `labelled`: it is that of a metric. */
export function Value({ value, depth = 0, labelled }: { value: Json; depth?: number; labelled?: boolean }) {
  if (typeof value === "number") return <b>{number(value, 6)}</b>;
  if (value === null || typeof value !== "object") return <Text>{value === null ? "–" : value}</Text>;
  const entries = Object.entries(value).filter(([, item]) => item !== null && item !== "");
  const text = JSON.stringify(value);
  if (!entries.length) return <span class="quiet">none</span>;
  if (depth > 3 || (Array.isArray(value) && text.length < 80)) return <Text>{text}</Text>;
  const named = labelled && isObject(value);
  if (named) entries.sort(([one], [other]) => rank(one) - rank(other));
  const list = (
    <dl class="facts inner">
      {entries.map(([name, item]) => (
        <>
          <dt>{named ? <Field name={name} /> : <Text>{name}</Text>}</dt>
          <dd>
            <Value value={item} depth={depth + 1} />
          </dd>
        </>
      ))}
    </dl>
  );
  if (!isLong(text)) return list;
  const score = isObject(value) ? value.score : undefined;
  return (
    <details>
      <summary>{typeof score === "number" ? <b>{number(score, 6)}</b> : `${entries.length} entries`}</summary>
      {list}
    </details>
  );
}
