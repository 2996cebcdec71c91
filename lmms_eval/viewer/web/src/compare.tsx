// Runs against each other: the numbers of `lmms-eval compare`, the documents that changed, and one of them side by side.
import { useEffect, useMemo } from "preact/hooks";

import { percent } from "./amounts";
import { useLoaded, Waiting } from "./common";
import { Differences } from "./differences";
import { PromptDifferences } from "./over_prompts";
import { Flips } from "./flips";
import { baseOf, changedParams, chosenRuns, isChanged, keyOf, kindsOfRow, MOST, shownPairs, usePairs, type Difference, type Pair, type Summary } from "./pairs";
import { Parts } from "./parts";
import { go, pageAddress, replace, type Route } from "./route";
import { SidesPage } from "./sides";
import { count, plain, Text } from "./text";
import type { Report, RunEntry } from "./types";

export type Change = (changes: Record<string, string | string[] | null>) => void;

export function ComparePage({ report, route }: { report: Report; route: Route }) {
  const { content, error } = useLoaded<Summary>(report.view ? "" : "compare");
  const doc = route.params.get("doc");
  useEffect(() => {
    document.title = plain([doc, "Compare", "lmms-eval"].filter(Boolean).join(" · "));
    window.scrollTo(0, 0);
  }, [doc]);
  if (report.view) return <main><Waiting error="a view compares no runs: lmms-eval report and lmms-eval compare do" /></main>;
  if (report.options.compare === false || report.runs.length < 2)
    return <main><Waiting error={report.runs.length < 2 ? "the report holds one run" : "this report was written with --no_compare"} /></main>;
  if (!content) return <main><Waiting error={error} /></main>;
  return <Chosen report={report} summary={content} route={route} />;
}

function Chosen({ report, summary, route }: { report: Report; summary: Summary; route: Route }) {
  const { params } = route;
  const runs = chosenRuns(report, summary, params);
  const base = baseOf(runs, summary, params);
  const { content: pairs, error } = usePairs(summary, shownPairs(runs, base));
  const row = useMemo(() => (pairs ? chosenRow(pairs, params) : undefined), [pairs, params]);
  const unknown = params.getAll("run").filter((name) => !report.runs.some((run) => run.name === name));
  const change: Change = (changes) => replace(pageAddress("compare", changedParams(params, changes)));
  if (params.has("doc") && row) return <SidesPage summary={summary} runs={runs} base={base} row={row} params={params} />;
  return (
    <main class="wide">
      <h1>Compare</h1>
      <RunChoice report={report} summary={summary} runs={runs} base={base} params={params} />
      {unknown.length > 0 && <Waiting error={`the report holds no run ${unknown.join(", ")}`} />}
      {runs.length < 2 && <p class="empty">Choose at least two runs.</p>}
      {runs.length >= 2 && !pairs && <Waiting error={error} />}
      {pairs && pairs.length > 0 && (
        <>
          <Refused pairs={pairs} />
          <Differences key={pairs.map(nameOf).join()} summary={summary} pairs={pairs} row={row} params={params} />
          <PromptDifferences pairs={pairs} />
          {row && <Parts summary={summary} pairs={pairs} row={row} params={params} change={change} />}
          {row && <Flips summary={summary} runs={runs} base={base} pair={pairs.length === 1 ? pairs[0] : undefined} row={row} params={params} change={change} />}
          <Notes summary={summary} pairs={pairs} />
        </>
      )}
    </main>
  );
}

const nameOf = (pair: Pair): string => `${pair.first.number}-${pair.second.number}`;

/** The row whose documents are shown: the one that the address names, else the one of which most changed. */
function chosenRow(pairs: Pair[], params: URLSearchParams): Difference | undefined {
  const rows = pairs.flatMap((pair) => pair.rows.flatMap((row) => {
    const kinds = kindsOfRow(pair, row);
    return kinds ? [{ row, changed: Object.keys(kinds).filter(isChanged).reduce((sum, kind) => sum + (kinds[kind] ?? 0), 0) }] : [];
  }));
  const named = rows.find(({ row }) => row.name === params.get("task") && keyOf(row) === params.get("metric"));
  return (named ?? rows.sort((a, b) => b.changed - a.changed)[0])?.row;
}

interface RunChoiceProps {
  report: Report;
  summary: Summary;
  runs: RunEntry[];
  base: RunEntry | undefined;
  params: URLSearchParams;
}

function RunChoice({ report, summary, runs, base, params }: RunChoiceProps) {
  const set = (changes: Parameters<Change>[0]) => go(pageAddress("compare", changedParams(params, { flip: null, ...changes })));
  const choose = (run: RunEntry) => {
    const next = runs.includes(run) ? runs.filter((one) => one !== run) : [...runs, run];
    const names = report.runs.filter((one) => next.includes(one)).map((one) => one.name);
    set({ run: names.length ? names : [""], base: names.includes(params.get("base") ?? "") ? params.get("base") : null });
  };
  return (
    <div class="bar choice">
      <fieldset>
        <legend>Runs</legend>
        {report.runs.map((run) => (
          <label>
            <input
              type="checkbox"
              checked={runs.includes(run)}
              disabled={run.number === summary.reference || (!runs.includes(run) && runs.length >= MOST)}
              onChange={() => choose(run)}
            />{" "}
            <Text>{run.name}</Text>
          </label>
        ))}
      </fieldset>
      <label class="field">
        Baseline
        <select value={base?.name ?? ""} disabled={summary.reference !== null} onChange={(event) => set({ base: event.currentTarget.value })}>
          {runs.length !== 2 && <option value="">none: all pairs</option>}
          {runs.map((run) => (
            <option value={run.name}>{plain(run.name)}</option>
          ))}
        </select>
      </label>
    </div>
  );
}

function Refused({ pairs }: { pairs: Pair[] }) {
  const refused = pairs.filter((pair) => pair.reason);
  return refused.length ? (
    <ul class="warnings">
      {refused.map((pair) => (
        <li class="mild">
          <b>
            <Text>{`${pair.first.name} and ${pair.second.name}`}</Text>
          </b>{" "}
          are not compared: <Text>{pair.reason}</Text>
        </li>
      ))}
    </ul>
  ) : null;
}

function Notes({ summary, pairs }: { summary: Summary; pairs: Pair[] }) {
  const notes = [...new Set([...pairs.flatMap((pair) => pair.notes), ...summary.notes])];
  return (
    <section class="notes">
      <h2>Notes</h2>
      <ul>
        <li>
          Verdicts go by p corrected after Holm over {summary.rows === 1 ? "the one difference" : `all ${count(summary.rows)} differences`} of this report, whichever runs are shown here; intervals
          are those of each difference alone, at {percent(1 - summary.alpha)}.
        </li>
        <li>
          {summary.margin === null
            ? "Nothing is called equivalent here, since that needs a margin: lmms-eval compare --margin."
            : `Equivalent: the difference is shown to lie within ±${summary.margin}.`}
        </li>
        {summary.reference !== null && <li>More than five runs have a task in common: each is compared with the first one alone.</li>}
        {notes.map((note) => (
          <li>
            <Text>{note}</Text>
          </li>
        ))}
      </ul>
    </section>
  );
}
