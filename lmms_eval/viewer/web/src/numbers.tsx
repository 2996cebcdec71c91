// Three and more runs in one table: the mean of each run, and the runs that it is better and worse than.
import { directionOf, labelOf, metricOf } from "./amounts";
import { Section, SortedTable, type Column } from "./common";
import { TaskLink } from "./differences";
import { Parted, useNames } from "./name";
import { keyOf, type Difference, type Pair } from "./pairs";
import { number, plain } from "./text";
import type { RunEntry } from "./types";

interface OneNumber {
  row: Difference;
  pair: Pair;
  /** By the number of the run. */
  runs: Map<number, Standing>;
}

interface Standing {
  /** Its means over the documents of each pair: one, if all pairs have the same documents. */
  means: number[];
  better: RunEntry[];
  worse: RunEntry[];
}

export function Numbers({ pairs, runs, row: chosen, params }: { pairs: Pair[]; runs: RunEntry[]; row: Difference | undefined; params: URLSearchParams }) {
  const { letter, short } = useNames();
  const rows = numbersOf(pairs);
  if (!rows.length) return null;
  const columns: Column<OneNumber>[] = [
    {
      name: "Number",
      value: ({ row }) => labelOf(row),
      cell: ({ pair, row }) => (
        <>
          <TaskLink pair={pair} row={row} params={params} />
          <small class="line">
            <Parted>{metricOf(row)}</Parted> {row.unit === "percent" && "(%) "}
            <span title={row.higher_is_better ? "More is better" : "Less is better"}>{row.higher_is_better ? "↑" : "↓"}</span>
          </small>
        </>
      ),
    },
    ...runs.map((run): Column<OneNumber> => ({
      name: window.innerWidth < 640 ? letter(run) : `${letter(run)} ${short(run)}`,
      title: run.name,
      class: "number standing",
      value: ({ runs: found }) => found.get(run.number)?.means[0] ?? null,
      cell: ({ row, runs: found }) => <Mean row={row} found={found.get(run.number)} />,
    })),
  ];
  return (
    <Section title="Scores">
      <p class="quiet">
        Means over the documents that are compared; below each one, the runs that it is <span class="right">▲ better</span> or{" "}
        <span class="wrong">▼ worse</span> than. Bold: worse than none.
      </p>
      <div class="standings">
        <SortedTable rows={rows} columns={columns} label="Scores" rowClass={({ row }) => (chosen && row.name === chosen.name && keyOf(row) === keyOf(chosen) ? "chosen" : "")} />
      </div>
    </Section>
  );
}

function Mean({ row, found }: { row: Difference; found: Standing | undefined }) {
  const { letter } = useNames();
  if (!found) return <span class="quiet">–</span>;
  const shown = (value: number): string => (row.unit === "percent" ? (100 * value).toFixed(1) : number(value));
  const [low, high] = [shown(Math.min(...found.means)), shown(Math.max(...found.means))];
  const among = (runs: RunEntry[], sign: string, word: string) =>
    runs.length > 0 && (
      <span class={sign === "▲" ? "right" : "wrong"} title={plain(`${word} than ${runs.map((run) => run.name).join(", ")}`)}>
        {sign}
        <span class="unseen"> {word} than </span> {runs.map(letter).join(" ")}
      </span>
    );
  return (
    <>
      <span class={found.worse.length ? "" : "best"} title={low === high ? undefined : "By the documents of each pair"}>
        {low === high ? low : `${low} – ${high}`}
      </span>
      <small class="line">
        {among(found.better, "▲", "better")} {among(found.worse, "▼", "worse")}
      </small>
    </>
  );
}

function numbersOf(pairs: Pair[]): OneNumber[] {
  const found = new Map<string, OneNumber>();
  for (const pair of pairs)
    for (const row of pair.rows) {
      const key = JSON.stringify([row.name, keyOf(row)]);
      const one = found.get(key) ?? { row, pair, runs: new Map<number, Standing>() };
      found.set(key, one);
      const [first, second] = [standing(one, pair.first), standing(one, pair.second)];
      first.means.push(row.first);
      second.means.push(row.second);
      const direction = directionOf(row.verdict);
      if (direction === "up" || direction === "down") {
        const [up, down, winner, loser] = direction === "up" ? [first, second, pair.first, pair.second] : [second, first, pair.second, pair.first];
        up.better.push(loser);
        down.worse.push(winner);
      }
    }
  return [...found.values()];
}

function standing(one: OneNumber, run: RunEntry): Standing {
  const found = one.runs.get(run.number) ?? { means: [], better: [], worse: [] };
  one.runs.set(run.number, found);
  return found;
}
