// One number of the compared runs: how many documents changed between two, or every run against every other.
import { directionOf, percent, share } from "./amounts";
import { SortedTable, Waiting } from "./common";
import { Facts, Size, Verdict } from "./differences";
import { Parted, RunName } from "./name";
import { changedParams, isRightOrWrong, keyOf, kindsOfRow, shownPairs, usePairs, type Difference, type Pair, type Summary } from "./pairs";
import { pageAddress } from "./route";
import { Tabled } from "./tabled";
import { count, plain } from "./text";
import type { RunEntry } from "./types";

/** One number of two runs: how many documents changed, and all that is known of the difference. */
export const PairNumber = ({ pair, row, params }: KindProps) => (
  <div class="halves">
    <KindTable pair={pair} row={row} params={params} />
    <Facts row={row} />
  </div>
);

interface SeveralProps {
  summary: Summary;
  runs: RunEntry[];
  row: Difference;
  params: URLSearchParams;
}

/** One number of several runs: every run against every other, and the ranks. */
export const SeveralNumber = ({ summary, runs, row, params }: SeveralProps) => (
  <div class="pairs">
    <Pairwise summary={summary} runs={runs} row={row} params={params} />
    <Ranks summary={summary} runs={runs} row={row} />
  </div>
);

interface KindProps {
  pair: Pair;
  row: Difference;
  params: URLSearchParams;
}

/** How many documents each run has right, or better; each number leads to exactly these documents. */
function KindTable({ pair, row, params }: KindProps) {
  const task = pair.tasks.find((one) => one.task === row.name);
  const kinds = kindsOfRow(pair, row);
  if (!task || !kinds) return null;
  const [first, second] = [plain(pair.first.name), plain(pair.second.name)];
  const cell = (kind: string, label: string) => <KindCell kind={kind} label={label} count={kinds[kind] ?? 0} params={params} />;
  return (
    <div>
      {isRightOrWrong(kinds) ? (
        <Tabled label="Documents by what the runs have right">
          <table class="kinds">
            <caption>Documents by what the runs have right</caption>
            <thead>
              <tr>
                <td />
                <th scope="col">
                  <RunName run={pair.second} /> right
                </th>
                <th scope="col">
                  <RunName run={pair.second} /> wrong
                </th>
              </tr>
            </thead>
            <tbody>
              <tr>
                <th scope="row">
                  <RunName run={pair.first} /> right
                </th>
                {cell("b", "both right")}
                {cell("f", `only ${first} right`)}
              </tr>
              <tr>
                <th scope="row">
                  <RunName run={pair.first} /> wrong
                </th>
                {cell("s", `only ${second} right`)}
                {cell("n", "both wrong")}
              </tr>
            </tbody>
          </table>
        </Tabled>
      ) : (
        <Tabled label="Documents by which run scores better">
          <table class="kinds">
            <caption>Documents by which run scores better</caption>
            <thead>
              <tr>
                <th scope="col">
                  <RunName run={pair.first} /> better
                </th>
                <th scope="col">equal</th>
                <th scope="col">
                  <RunName run={pair.second} /> better
                </th>
              </tr>
            </thead>
            <tbody>
              <tr>
                {cell(">", `${first} better`)}
                {cell("=", "equal")}
                {cell("<", `${second} better`)}
              </tr>
            </tbody>
          </table>
        </Tabled>
      )}
      {(kinds["-"] ?? 0) > 0 && (
        <p>
          <a href={pageAddress("compare", changedParams(params, { flip: "-" }))}>{count(kinds["-"])} without a score on a side</a>
        </p>
      )}
      {task.shown < task.documents && (
        <p class="quiet">
          The report holds {count(task.shown)} of these {count(task.documents)} documents; the numbers are those of all.
        </p>
      )}
    </div>
  );
}

function KindCell({ kind, label, count: documents, params }: { kind: string; label: string; count: number; params: URLSearchParams }) {
  const isChosen = params.get("flip") === kind;
  const tone = { f: "right", ">": "right", s: "wrong", "<": "wrong" }[kind] ?? "";
  return (
    <td class={`number ${isChosen ? "selected" : ""}`}>
      <a
        class={tone}
        href={pageAddress("compare", changedParams(params, { flip: isChosen ? null : kind }))}
        aria-label={`${count(documents)} documents: ${label}`}
        aria-current={isChosen ? "true" : undefined}
      >
        {count(documents)}
      </a>
    </td>
  );
}

/** Every run against every other in one row: difference, verdict, and on how many documents each is better. */
function Pairwise({ summary, runs, row, params }: { summary: Summary; runs: RunEntry[]; row: Difference; params: URLSearchParams }) {
  const { content, error } = usePairs(summary, [...shownPairs(runs, undefined), ...shownPairs([...runs].reverse(), undefined)]);
  if (!content) return <Waiting error={error} />;
  const find = (first: RunEntry, second: RunEntry) => {
    const pair = content.find((one) => one.first === first && one.second === second);
    const found = pair?.rows.find((one) => one.name === row.name && keyOf(one) === keyOf(row));
    const kinds = pair && found && kindsOfRow(pair, found);
    const changed = kinds && [(kinds.f ?? 0) + (kinds[">"] ?? 0), (kinds.s ?? 0) + (kinds["<"] ?? 0)];
    return { found, changed, reason: pair?.reason ?? "" };
  };
  return (
    <Tabled label="Pairs">
      <table class="pairwise">
        <caption>Row − column; below, on how many documents the row's run is better : worse</caption>
        <thead>
          <tr>
            <td />
            {runs.map((run) => (
              <th scope="col">
                <RunName run={run} folds />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {runs.map((first) => (
            <tr>
              <th scope="row">
                <RunName run={first} folds />
              </th>
              {runs.map((second) => {
                const known = find(first, second);
                return (
                  <td class={first === second ? "itself" : known.found ? directionOf(known.found.verdict) : ""}>
                    {first !== second && <PairCell first={first} second={second} params={params} {...known} />}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </Tabled>
  );
}

interface PairCellProps {
  first: RunEntry;
  second: RunEntry;
  found: Difference | undefined;
  /** Documents on which the first is better, and worse. */
  changed: number[] | undefined;
  reason: string;
  params: URLSearchParams;
}

function PairCell({ first, second, found, changed, reason, params }: PairCellProps) {
  if (!found) return <span class="quiet" title={plain(reason || "no such number of these runs")}>–</span>;
  const to = changedParams(params, { run: [first.name, second.name], base: second.name, task: found.name, metric: keyOf(found), flip: null });
  return (
    <a href={pageAddress("compare", to)}>
      <span class="unseen">{plain(`${first.name} against ${second.name}: `)}</span>
      <Size row={found} />
      {changed && (
        <small class="line">
          {count(changed[0])} : {count(changed[1])}
        </small>
      )}
      <Verdict row={found} short />
    </a>
  );
}

function Ranks({ summary, runs, row }: Omit<SeveralProps, "params">) {
  const name = `${row.name} ${keyOf(row)}`;
  const ranks = Object.hasOwn(summary.ranks, name) ? summary.ranks[name] : undefined;
  if (!ranks) return <p class="quiet">No ranks: they need three runs with scores for the same documents, and a number that is their mean.</p>;
  const runOf = (name: string): RunEntry | undefined => runs.find((run) => run.name === name);
  return (
    <div>
      <SortedTable
        rows={ranks}
        label="Ranks"
        columns={[
          { name: "Rank", title: "Among all runs of the report", class: "number", value: (rank) => rank.rank },
          { name: "Run", value: (rank) => rank.run, cell: (rank) => <Ranked name={rank.run} run={runOf(rank.run)} /> },
          { name: "Mean", class: "number", value: (rank) => rank.score, cell: (rank) => share(row, rank.score) },
          {
            name: `Rank, ${percent(1 - summary.alpha)}`,
            title: "Ranks that hold for all runs at once",
            class: "number",
            value: (rank) => rank.best,
            cell: (rank) => (rank.best === rank.worst ? rank.best : `${rank.best} – ${rank.worst}`),
          },
        ]}
      />
    </div>
  );
}

/** A run that is shown has its letter. */
const Ranked = ({ name, run }: { name: string; run: RunEntry | undefined }) => (run ? <RunName run={run} /> : <Parted>{name}</Parted>);
