// What the controls without media answer too (--ablate), of all documents and by the columns that divide them.
import { list, numeric, object } from "./benchmark_parts";
import { metricName } from "./cells";
import { Score, Section, SortedTable, type Column } from "./common";
import { count, plain, Text, told } from "./text";
import type { Cell, Json, JsonObject } from "./types";

interface Row {
  by: string;
  value: string;
  answered: number;
  explained: Cell;
  rest: number;
  score: Cell;
}

const cellOf = (value: Json | undefined, interval: Json | undefined, n: number): Cell => {
  const { low, high, method, reason } = object(interval);
  return { value: numeric(value), low: numeric(low), high: numeric(high), n, method: told(method ?? reason) };
};

const rowOf = (found: JsonObject): Row => {
  const [answered, rest] = [numeric(found.answered) ?? 0, numeric(found.rest) ?? 0];
  return {
    by: told(found.by),
    value: told(found.value),
    answered,
    explained: cellOf(found.explained, found.explained_interval, answered),
    rest,
    score: cellOf(found.rest_score, found.rest_interval, rest),
  };
};

const COLUMNS: Column<Row>[] = [
  { name: "By", value: (row) => row.by, cell: (row) => (row.by ? <Text>{row.by}</Text> : "all documents") },
  { name: "Value", value: (row) => row.value, cell: (row) => <Text>{row.value}</Text> },
  { name: "Answered", title: "Documents that the run answers", class: "number", value: (row) => row.answered, cell: (row) => count(row.answered) },
  {
    name: "Explained",
    title: "Share of these that a run without the media answers too",
    class: "number",
    value: (row) => row.explained.value,
    cell: (row) => <Score cell={row.explained} />,
  },
  { name: "Rest", title: "Documents that no run without the media answers", class: "number", value: (row) => row.rest, cell: (row) => count(row.rest) },
  { name: "Score of the rest", class: "number", value: (row) => row.score.value, cell: (row) => <Score cell={row.score} /> },
];

export function NeedsMedia({ document }: { document: JsonObject }) {
  const found = Object.entries(object(document.needs_media)).flatMap(([task, rows]) =>
    Object.entries(object(rows)).map(([key, entry]) => ({ task, key, entry: object(entry) })),
  );
  if (!found.length) return null;
  return (
    <Section title="What needs the media">
      {found.map(({ task, key, entry }) => (
        <div key={`${task} ${key}`}>
          <h3>
            <Text>{task}</Text> {metricName(key)}
          </h3>
          <p class="quiet">
            Without the media: <Text>{(Array.isArray(entry.controls) ? entry.controls : []).map(told).join(", ")}</Text>. Explained: of the documents that the run answers,
            the share that a run without the media answers too. Rest: <Text>{told(entry.about_rest)}</Text>.
          </p>
          <SortedTable
            rows={list(entry.cells).map(rowOf)}
            columns={COLUMNS}
            label={`What needs the media: ${plain(task)} ${metricName(key)}`}
            most={16}
          />
        </div>
      ))}
    </Section>
  );
}
