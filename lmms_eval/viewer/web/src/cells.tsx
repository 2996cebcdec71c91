// The columns of the list of samples, and their cells.
import type { ComponentChildren } from "preact";

import { cut } from "./amounts";
import { Picture } from "./media";
import { Headline, type Table } from "./table";
import { count, number, plain, seconds, Text } from "./text";
import type { ColumnFacts, Verdict } from "./types";

export interface ListColumn {
  key: string;
  name: string;
  /** What it is called in the data, where the name is another. */
  title?: string;
  width: string;
  class?: string;
  /** The columns of the table that its cells need, if not the one of its key. */
  needs?: string[];
  cell: (row: number) => ComponentChildren;
}

/** `acc,none` is "acc", `acc,strict` is "acc (strict)". */
export const metricName = (name: string): string => plain(name.replace(/,none$/, "").replace(/,(.+)$/, " ($1)"));

/** Columns about how answers were parsed, with the words of the page. */
const PARSING: Record<string, string> = {
  reading: "Parsing",
  answer: "Answer kind",
  drawn: "Random guess",
  "rule.rule": "Parsing rule",
  "rule.step": "Parsing step",
  "rule.outcome": "Parsing outcome",
  "rule.fixed_rule": "Fixed parsing rule",
  "rule.fixed_step": "Fixed parsing step",
};

/** The name of a column of metadata in words: `audit.rule.rule,strict` is "Parsing rule (strict)". */
export function metadataName(key: string): string {
  const [name = "", pipeline] = key.split(/,(.*)/s);
  const parsing = name.startsWith("audit.") ? name.slice("audit.".length) : undefined;
  const known = parsing === undefined ? undefined : parsing.startsWith("by.") ? `By ${parsing.slice(3)}` : PARSING[parsing];
  const words = known ?? name.replace(/[_.]+/g, " ").trim();
  return plain(`${words.charAt(0).toUpperCase()}${words.slice(1)}${pipeline ? ` (${pipeline})` : ""}`);
}

/** All columns that a table has; the address says which are shown. */
export function allColumns(table: Table, params: URLSearchParams): ListColumn[] {
  const headline = new Headline(table, params);
  const [only] = headline.columns;
  const text = (key: string, name: string, width: string): ListColumn => ({ key, name, width, cell: (row) => <Text>{table.text(key, row)}</Text> });
  const numeric = (key: string, name: string, width: string, shown: (value: number | null) => string): ListColumn => ({
    key, name, width, class: "number", cell: (row) => shown(table.number(key, row)),
  });
  const places = headline.decimals();
  const alike = alikeIn(table.tasks.map((task) => task.name));
  const judged = ["status", ...headline.columns];
  const columns: ListColumn[] = [
    text("id", "Id", "minmax(44px, 88px)"),
    { key: "task", name: "Task", width: "minmax(120px, 220px)", cell: (row) => <TaskName name={table.tasks[table.task(row)]?.name ?? ""} from={alike} /> },
    { key: "verdict", name: "Verdict", width: "92px", needs: judged, cell: (row) => <VerdictLabel verdict={headline.verdict(row)} otherwise={verdictText(null, headline.at(row), undefined)} /> },
    {
      key: "score",
      name: (headline.columns.length === 1 && only && metricName(only.slice(2))) || "Score",
      width: "minmax(64px, 96px)",
      class: "number",
      needs: judged,
      cell: (row) => <ScoreCell headline={headline} row={row} decimals={places} />,
    },
    { key: "thumb", name: "Picture", width: "64px", needs: ["thumb", "masks"], cell: (row) => <Thumbnail table={table} row={row} /> },
    text("answer", "Answer", "minmax(90px, 3fr)"),
    text("target", "Reference", "minmax(80px, 2fr)"),
    text("reason", "Reason", "minmax(90px, 2fr)"),
    text("finish", "Finish", "84px"),
    numeric("latency", "Latency", "76px", seconds),
    numeric("in", "Tokens in", "84px", count),
    numeric("out", "Tokens out", "84px", count),
  ];
  columns.push(...table.names("s.").map((name) => numeric(`s.${name}`, metricName(name), "minmax(64px, 96px)", number)));
  columns.push(...table.names("m.").map((name) => ({ ...text(`m.${name}`, metadataName(name), "minmax(72px, 1fr)"), title: plain(name) })));
  return columns;
}

export const Thumbnail = ({ table, row }: { table: Table; row: number }) => <Picture src={table.text("thumb", row)} masks={table.text("masks", row)} />;

/** Characters with which all names begin, in whole words. */
function alikeIn(names: string[]): number {
  const [first = "", ...others] = names;
  if (!others.length) return 0;
  let length = 0;
  while (length < first.length && others.every((name) => name[length] === first[length])) length++;
  return first.lastIndexOf("_", length - 1) + 1;
}

/** The name of a task without the words that all tasks share; where that is long, without its middle. */
const TaskName = ({ name, from }: { name: string; from: number }) => (
  <span title={plain(name)}>
    <Text>{cut(name.slice(from) || name, 29)}</Text>
  </span>
);

function isUseful(table: Table, key: string): boolean {
  if (key === "task") return table.tasks.length > 1;
  if (["thumb", "latency", "out", "reason"].includes(key)) return !(table.columns.get(key)?.isEmpty ?? true);
  return !["finish", "in"].includes(key) && !/^[sm]\./.test(key);
}

export const isNarrow = (): boolean => window.innerWidth < 640;
/** The columns of a narrow list, with their widths. */
const NARROW: Record<string, string> = { id: "minmax(28px, max(40px, 14vw))", score: "76px", thumb: "56px", answer: "minmax(80px, 1fr)" };

export function columnsOf(table: Table, params: URLSearchParams): ListColumn[] {
  const all = allColumns(table, params);
  const wanted = params.get("cols")?.split(" ");
  if (wanted) return all.filter((column) => wanted.includes(column.key) || column.key === "id");
  const narrow = isNarrow();
  return all
    .filter((column) => isUseful(table, column.key) && (!narrow || Object.hasOwn(NARROW, column.key)))
    .map((column) => (narrow && Object.hasOwn(NARROW, column.key) ? { ...column, width: NARROW[column.key] as string } : column));
}

const TONES: Record<Verdict, string> = { correct: "right", wrong: "wrong", partly: "partly", unscored: "unscored", failed: "failed" };

export const toneOf = (verdict: Verdict | null): string => (verdict === null ? "none" : TONES[verdict]);

/** A coloured dot; its form tells failed and unscored samples from the others without the colour. */
export const Dot = ({ verdict }: { verdict: Verdict | null }) => <i class={`dot ${toneOf(verdict)}`} aria-hidden="true" />;

/** `otherwise`: what is said without a verdict. */
export const VerdictLabel = ({ verdict, otherwise = "–" }: { verdict: Verdict | null; otherwise?: string }) => (
  <span class={`verdict-label ${toneOf(verdict)}`}>
    <Dot verdict={verdict} />
    {verdict ?? otherwise}
  </span>
);

/** Why a sample has no score: `status` as in `STATUSES`. */
export const Status = ({ status }: { status: number }) => <VerdictLabel verdict={status === 2 ? "failed" : status === 1 ? "unscored" : null} />;

/** "partly .5", and of other scales "partly 3 of 6". */
export function verdictText(verdict: Verdict | null, score: number | null, ends: ColumnFacts["ends"]): string {
  if (verdict === null) return score === null ? "no score" : "scored";
  if (verdict !== "partly" || score === null || !ends) return verdict;
  const [worst, best] = ends;
  if (best === 1 && worst === 0) {
    const share = short(score, 3);
    return `partly ${share === "0" || share === "1" ? number(score) : share.replace(/^0/, "")}`;
  }
  return worst === null || best < worst ? `partly ${short(score)}` : `partly ${short(score)} of ${short(best)}`;
}

const short = (value: number, digits = 2): string => String(Number(value.toFixed(digits)));

/** A score in a list. Where the list shows no verdicts, a dot is in front of it. */
export function ScoreCell({ headline, row, decimals }: { headline: Headline; row: number; decimals: number }) {
  const verdict = headline.verdict(row);
  const score = headline.at(row);
  return (
    <span class={toneOf(verdict)}>
      <span class="narrow">
        <Dot verdict={verdict} />
        <span class="unseen">{verdict}</span>
      </span>
      {score === null ? "–" : fixed(score, decimals)}
    </span>
  );
}

/** With the decimals of its column, unless these would show another value as 0. */
const fixed = (value: number, decimals: number): string => (value !== 0 && Math.abs(value) < 0.5 / 10 ** decimals ? number(value) : value.toFixed(decimals));
