// The columns of the list of samples, and their cells.
import type { ComponentChildren } from "preact";

import { cut } from "./amounts";
import { Picture } from "./media";
import { mainScore, STATUSES, type Table } from "./table";
import { count, number, plain, seconds, Text } from "./text";

export interface ListColumn {
  key: string;
  name: string;
  width: string;
  class?: string;
  cell: (row: number) => ComponentChildren;
}

export const metricName = (name: string): string => plain(name.replace(/,none$/, ""));

/** All columns that a table has; which are shown stands in the address. */
export function allColumns(table: Table, params: URLSearchParams): ListColumn[] {
  const main = mainScore(table, params);
  const text = (key: string, name: string, width: string): ListColumn => ({ key, name, width, cell: (row) => <Text>{table.text(key, row)}</Text> });
  const told = (key: string, name: string, width: string, tell: (value: number | null) => string): ListColumn => ({
    key, name, width, class: "number", cell: (row) => tell(table.number(key, row)),
  });
  const columns: ListColumn[] = [
    text("id", "Id", "minmax(56px, 96px)"),
    { key: "task", name: "Task", width: "minmax(120px, 200px)", cell: (row) => <TaskName name={table.tasks[table.task(row)]?.name ?? ""} /> },
    { key: "thumb", name: "Picture", width: "52px", cell: (row) => <Picture src={table.text("thumb", row)} /> },
    { key: `s.${main}`, name: metricName(main) || "Score", width: "minmax(64px, 96px)", class: "number", cell: (row) => <ScoreCell table={table} row={row} main={main} /> },
    text("answer", "Answer", "minmax(90px, 3fr)"),
    text("target", "Reference", "minmax(80px, 2fr)"),
    { key: "status", name: "Outcome", width: "84px", cell: (row) => <Status status={table.status(row)} /> },
    text("finish", "Finish", "84px"),
    told("latency", "Latency", "76px", seconds),
    told("in", "Tokens in", "84px", count),
    told("out", "Tokens out", "84px", count),
    text("reason", "Reason", "minmax(90px, 2fr)"),
  ];
  const others = table.names("s.").filter((name) => name !== main);
  columns.push(...others.map((name) => told(`s.${name}`, metricName(name), "minmax(64px, 96px)", number)));
  columns.push(...table.names("m.").map((name) => text(`m.${name}`, plain(name), "minmax(72px, 1fr)")));
  return columns;
}

/** Names of tasks often begin alike, so what is left out is the middle. */
const TaskName = ({ name }: { name: string }) => (
  <span title={plain(name)}>
    <Text>{cut(name, 27)}</Text>
  </span>
);

function isUseful(table: Table, key: string): boolean {
  if (key === "task") return table.tasks.length > 1;
  if (key === "status") return table.tasks.some((task) => (task.outcomes.unscored ?? 0) + (task.outcomes.failed ?? 0) > 0);
  if (["thumb", "latency", "out", "reason"].includes(key)) return !(table.columns.get(key)?.isEmpty ?? true);
  return key !== "finish" && key !== "in" && !key.startsWith("m.");
}

export function columnsOf(table: Table, params: URLSearchParams): ListColumn[] {
  const all = allColumns(table, params);
  const wanted = params.get("cols")?.split(" ");
  if (wanted) return all.filter((column) => wanted.includes(column.key) || column.key === "id");
  const main = mainScore(table, params);
  const narrow = window.innerWidth < 640;
  return all.filter((column) => isUseful(table, column.key) && (!column.key.startsWith("s.") || column.key === `s.${main}`))
    .filter((column) => !narrow || ["id", "thumb", `s.${main}`, "answer"].includes(column.key));
}

export function Status({ status }: { status: number }) {
  return <span class={`badge ${status === 2 ? "grave" : status === 1 ? "mild" : ""}`}>{STATUSES[status]}</span>;
}

export function ScoreCell({ table, row, main }: { table: Table; row: number; main: string }) {
  const value = table.number(`s.${main}`, row);
  return <span class={tone(value, main)}>{number(value)}</span>;
}

/** Full marks and none are marked; the scale is that of the column. */
function tone(value: number | null, main: string): string {
  if (value === null) return "quiet";
  if (value === 0) return "wrong";
  return value === 1 || (value === 100 && !main.includes("_fixed")) ? "right" : "partly";
}
