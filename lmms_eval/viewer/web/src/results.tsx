// The table of a run's scores: the benchmarks' own numbers, then those of each task, each with its interval, what that is over, and its wrong answers.
import { SortedTable, type Column } from "./common";
import { fewNote, plotColumns, scoreColumn, countColumn } from "./plot";
import { address, verdictAddress } from "./route";
import { count, methodText, number, plain, Text } from "./text";
import type { Cell, Counted, ResultRow, RunEntry, Verdict } from "./types";

/** Rows of a table that are shown at first. */
export const MOST = 16;

const GROUPED = /^( *)- (.*)$/;

/** The name that tables of the run have for a task, and how deep it stands below its group. */
function nameOf(row: ResultRow): { name: string; depth: number } {
  const [, indent = "", name = row.alias ?? row.task] = GROUPED.exec(row.alias ?? "") ?? [];
  return { name, depth: indent.length };
}

const cellOf = (row: ResultRow): Cell => row;

export function Results({ run }: { run: RunEntry }) {
  const own = run.headlines.filter((row) => row.value !== null);
  const rows = [...own, ...run.rows];
  if (!rows.length) return <p class="quiet">No score yet.</p>;
  const known = new Set(run.tasks.map((task) => task.name));
  const hasTask = (row: ResultRow): boolean => !own.includes(row) && known.has(row.task);
  const scaleOf = (row: ResultRow): string => (own.includes(row) ? row.task : `\n${row.metric}`); // levels of a benchmark have one scale
  const abouts = new Set(rows.map((row) => row.about).filter(Boolean));
  const columns: Column<ResultRow>[] = [
    { name: "Task", value: (row) => row.task, cell: (row) => <Named run={run} row={row} isTask={hasTask(row)} /> },
    scoreColumn(rows, "Score", shortly, { formatOf: scaleOf }),
    ...plotColumns(rows, { cellOf, scaleOf }),
    countColumn(rows, cellOf, (row) => row.over ?? "questions"),
  ];
  if (rows.some((row) => row.stderr)) columns.push({ name: "Stderr", class: "number later", value: (row) => row.stderr ?? null, cell: (row) => number(row.stderr) });
  columns.push({
    name: "Interval",
    title: "How the interval came about, or why there is none",
    class: "words later",
    value: (row) => howOf(row),
    cell: (row) => (
      <>
        <small>
          <Text>{howOf(row)}</Text>
        </small>
        {abouts.size > 1 && row.about && <small class="line">about {row.about}</small>}
      </>
    ),
  });
  if (rows.some(hasTask))
    columns.push({ name: "Answers", class: "whole later", value: () => null, cell: (row) => hasTask(row) && isFirst(run, row) && <Answers run={run} row={row} /> });
  const notes = [abouts.size === 1 && `95 % intervals about ${[...abouts][0]}`, fewNote(rows, "questions, tasks or clusters")].filter(Boolean).join(" · ");
  return (
    <>
      <SortedTable rows={rows} columns={columns} label="Results" most={MOST} note={notes || undefined} />
      <Counts counts={run.counts ?? []} several={run.tasks.length > 1} />
    </>
  );
}

/** Characters of a reason that stands beside its number; longer ones have a column of their own. */
const SHORT = 14;

const shortly = (row: ResultRow): Cell => (row.low === null && (row.method ?? "").length > SHORT ? { ...row, method: "no interval" } : row);

const howOf = (row: ResultRow): string => methodText(row.method) || (row.about ? "benchmark-defined" : "");

const isFirst = (run: RunEntry, row: ResultRow): boolean => run.rows.find((one) => one.task === row.task) === row;

/** A name whose lines may break after its underscores. */
function Broken({ children }: { children: string }) {
  const pieces = children.split(/(?<=_)(?=[^_])/);
  return (
    <span>
      {pieces.map((piece, place) => (
        <>
          {place > 0 && <wbr />}
          <Text>{piece}</Text>
        </>
      ))}
    </span>
  );
}

function Named({ run, row, isTask }: { run: RunEntry; row: ResultRow; isTask: boolean }) {
  const { name, depth } = nameOf(row);
  const metric = plain(row.metric) + (row.filter && row.filter !== "none" ? `, ${plain(row.filter)}` : "");
  return (
    <span class="named" style={{ paddingLeft: `${14 * depth}px` }} title={name === row.task ? undefined : plain(row.task)}>
      {isTask ? (
        <a href={address([run.name, row.task])}>
          <Broken>{name}</Broken>
        </a>
      ) : (
        <Broken>{name}</Broken>
      )}
      <small>
        {metric}
        {!row.higher && <span title="Lower is better"> ↓</span>}
      </small>
      {isTask && isFirst(run, row) && (
        <small class="narrow">
          <Answers run={run} row={row} />
        </small>
      )}
      {row.low === null && row.method && <small class="narrow reason">{methodText(row.method)}</small>}
    </span>
  );
}

/** The way to the wrong answers, with their number if it is known. */
function Answers({ run, row }: { run: RunEntry; row: ResultRow }) {
  const verdicts = run.tasks.find((task) => task.name === row.task)?.verdicts;
  const isKnown = verdicts && ["correct", "wrong", "partly"].some((verdict) => verdicts[verdict as Verdict]);
  if (isKnown && !verdicts.wrong) return <small>none wrong</small>;
  const text = isKnown ? `${count(verdicts.wrong)} wrong` : "Wrong";
  return (
    <a href={verdictAddress(run.name, row.task, "wrong")} aria-label={`${text} answers of ${plain(row.task)}`}>
      {text}
    </a>
  );
}

/** Metrics that score nothing, in one line: each label once, with the tasks where there are several. */
function Counts({ counts, several }: { counts: Counted[]; several: boolean }) {
  if (!counts.length) return null;
  const labels = [...new Set(counts.map((one) => one.label))];
  const text = labels.map((label) => {
    const found = counts.filter((one) => one.label === label);
    const sum = found.reduce((all, one) => all + one.n, 0);
    return `${count(sum)} ${label}${several ? ` (${found.length === 1 ? plain(found[0]?.task) : `${found.length} tasks`})` : ""}`;
  });
  return <p class="quiet">Also counted: {text.join(" · ")}</p>;
}
