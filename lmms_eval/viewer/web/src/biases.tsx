// What is known about the judge of a run: what people's scores make of its scores, and what these owe to length and position.
import { Score, Section, SortedTable, type Column } from "./common";
import { isObject } from "./messages";
import { count, number, Text, told } from "./text";
import type { Cell, Json, JsonObject } from "./types";

interface Row extends Cell {
  task: string;
  about: string;
  isShare?: boolean;
  note: string;
}

const COLUMNS: Column<Row>[] = [
  { name: "Task", value: (row) => row.task },
  { name: "About", value: (row) => row.about },
  { name: "Value", class: "number", value: (row) => row.value, cell: (row) => <Score cell={row} shown={row.isShare ? share : number} /> },
  { name: "N", title: "Documents", class: "number", value: (row) => row.n, cell: (row) => count(row.n) },
  { name: "Note", class: "words", value: (row) => row.note, cell: (row) => <Text>{row.note}</Text> },
];

const share = (value: number): string => `${(100 * value).toFixed(1)} %`;

/** A section about the judge, if results say something about it. */
export function Biases({ document }: { document: JsonObject }) {
  const rows = [...entries(document.human_scores).flatMap(([task, one]) => corrected(task, one)), ...entries(document.judge_bias).flatMap(([task, one]) => biases(task, one))];
  if (!rows.length) return null;
  return (
    <Section title="Judge">
      <SortedTable rows={rows} columns={COLUMNS} label="Judge" most={16} />
    </Section>
  );
}

const entries = (part: Json | undefined): [string, JsonObject][] =>
  isObject(part) ? Object.entries(part).filter((entry): entry is [string, JsonObject] => isObject(entry[1])) : [];

const finite = (value: Json | undefined): number | null => (typeof value === "number" ? value : null);

const cell = (value: Json | undefined, ends: Json | undefined, n: Json | undefined): Cell => {
  const found = isObject(ends) ? ends : {};
  return { value: finite(value), low: finite(found.low), high: finite(found.high), n: finite(n) ?? 0, method: told(found.reason) };
};

function corrected(task: string, one: JsonObject): Row[] {
  const note = `judge: ${number(finite(one.judge))}; for questions like these`;
  return [{ task, about: "mean human score, estimated", note, ...cell(one.corrected, one.interval, one.documents), n: finite(one.labels) ?? 0 }];
}

function biases(task: string, one: JsonObject): Row[] {
  const rows: Row[] = [];
  const slopes: [Json | undefined, string, string][] = [
    [one.length, "score, with each doubling of the answer's length", "longer answers may be better ones"],
    [one.length_given_human, "the same at equal human scores", ""],
  ];
  for (const [found, about, note] of slopes) {
    if (!isObject(found)) continue;
    const correlation = finite(found.correlation);
    const shown = [correlation === null ? "" : `correlation ${correlation.toFixed(2)}`, note].filter(Boolean).join("; ");
    rows.push({ task, about, note: found.slope === null ? told(found.reason) : shown, ...cell(found.slope, found, found.n) });
  }
  if (isObject(one.position)) rows.push(...positions(task, one.position));
  return rows;
}

function positions(task: string, found: JsonObject): Row[] {
  const rows: Row[] = [];
  const both = isObject(found.changed);
  if (isObject(found.changed)) rows.push({ task, about: "preference changes with the order", isShare: true, note: "", ...cell(found.changed.value, found.changed, found.changed.n) });
  if (isObject(found.first)) {
    const note = both ? "over both orders; 50 % without preference for a position" : "one order only: quality and position together";
    rows.push({ task, about: "first answer preferred", isShare: true, note, ...cell(found.first.value, found.first, found.first.n) });
  }
  return rows;
}
