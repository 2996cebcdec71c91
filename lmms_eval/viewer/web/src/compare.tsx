// Runs against each other: the numbers of `lmms-eval compare`, the documents that changed, and one of them side by side.
import { useEffect, useMemo } from "preact/hooks";

import { labelOf, percent } from "./amounts";
import { Section, useLoaded, Waiting } from "./common";
import { Differences, type Shown } from "./differences";
import { DocumentList } from "./documents";
import { PairNumber, SeveralNumber } from "./flips";
import { Compared, comparedNames, RunName, shortNames } from "./name";
import { Numbers } from "./numbers";
import { PromptDifferences } from "./over_prompts";
import { baseOf, changedParams, chosenRuns, isChanged, keyOf, kindsOfRow, MOST, shownPairs, summaryName, useDocuments, usePairs, type Difference, type Pair, type Summary } from "./pairs";
import { Parts } from "./parts";
import { go, pageAddress, replace, type Route } from "./route";
import { SidesPage } from "./sides";
import { count, plain, Text } from "./text";
import type { Report, RunEntry } from "./types";

export type Change = (changes: Record<string, string | string[] | null>) => void;

export function ComparePage({ report, route }: { report: Report; route: Route }) {
  const name = summaryName(report, route.params);
  const { content, error } = useLoaded<Summary>(name);
  const summary = useMemo(() => content && { ...content, prefix: name.slice(0, -"compare".length) }, [content, name]);
  const doc = route.params.get("doc");
  useEffect(() => {
    document.title = plain([doc, "Compare", "lmms-eval"].filter(Boolean).join(" · "));
    window.scrollTo(0, 0);
  }, [doc]);
  if (report.options.compare === false || report.runs.length < 2)
    return <main><Waiting error={report.runs.length < 2 ? "there is one run: a comparison needs two" : "this report was written with --no_compare"} /></main>;
  if (!name) return <Few report={report} route={route} />;
  if (!summary) return <main><Waiting error={error} /></main>;
  return <Chosen report={report} summary={summary} route={route} />;
}

/** A view of which fewer than two runs are chosen that have ended. */
const Few = ({ report, route: { params } }: { report: Report; route: Route }) => (
  <main class="wide">
    <h1>Compare</h1>
    <RunChoice report={report} reference={null} runs={report.runs.filter((run) => !run.live && params.getAll("run").includes(run.name))} base={undefined} params={params} />
    <p class="empty">Choose at least two runs that have ended.</p>
  </main>
);

function Chosen({ report, summary, route }: { report: Report; summary: Summary; route: Route }) {
  const { params } = route;
  const runs = chosenRuns(report, summary, params);
  const base = baseOf(runs, summary, params);
  const { content: pairs, error } = usePairs(summary, shownPairs(runs, base));
  const row = useMemo(() => (pairs ? chosenRow(pairs, params) : undefined), [pairs, params]);
  const unknown = params.getAll("run").filter((name) => !report.runs.some((run) => run.name === name));
  const change: Change = (changes) => replace(pageAddress("compare", changedParams(params, changes)));
  const names = useMemo(() => comparedNames(runs), [runs.map((run) => run.number).join()]);
  if (params.has("doc") && row)
    return (
      <Compared.Provider value={names}>
        <SidesPage summary={summary} runs={runs} base={base} row={row} params={params} />
      </Compared.Provider>
    );
  const all = pairs?.flatMap((pair) => pair.rows.map((one): Shown => ({ pair, row: one }))) ?? [];
  const ofRow = all.filter((one) => row && one.row.name === row.name && keyOf(one.row) === keyOf(row));
  const [pair] = pairs ?? [];
  return (
    <Compared.Provider value={names}>
      <main class="wide">
        <h1>Compare</h1>
        <RunChoice report={report} reference={summary.reference} runs={runs} base={base} params={params} />
        {unknown.length > 0 && <Waiting error={`the report holds no run ${unknown.join(", ")}`} />}
        {runs.length < 2 && <p class="empty">Choose at least two runs.</p>}
        {runs.length >= 2 && !pairs && <Waiting error={error} />}
        {pairs && pairs.length > 0 && (
          <>
            <Refused pairs={pairs} />
            {pairs.length > 1 && <Numbers pairs={pairs} runs={runs} row={row} params={params} />}
            {pairs.length === 1 && all.length > 0 && (
              <Section title="Differences">
                <Differences key={nameOf(pairs[0] as Pair)} summary={summary} rows={all} several={false} chosen={row} params={params} />
              </Section>
            )}
            {row && (
              <Section title={plain(labelOf(row))} id="number">
                {pairs.length === 1 && pair ? (
                  <PairNumber pair={pair} row={row} params={params} />
                ) : (
                  <>
                    <SeveralNumber summary={summary} runs={runs} row={row} params={params} />
                    <Differences key={pairs.map(nameOf).join()} summary={summary} rows={ofRow} several chosen={row} params={params} />
                  </>
                )}
              </Section>
            )}
            {row && <Parts summary={summary} pairs={pairs} row={row} params={params} change={change} />}
            {row && <ChangedDocuments summary={summary} runs={runs} base={base} row={row} params={params} change={change} />}
            <PromptDifferences pairs={pairs} />
            <Notes summary={summary} pairs={pairs} />
          </>
        )}
      </main>
    </Compared.Provider>
  );
}

interface ChangedProps {
  summary: Summary;
  runs: RunEntry[];
  base: RunEntry | undefined;
  row: Difference;
  params: URLSearchParams;
  change: Change;
}

function ChangedDocuments({ summary, runs, base, row, params, change }: ChangedProps) {
  const { content, error } = useDocuments(summary, runs, base, row);
  return (
    <Section title="Documents" id="documents">
      {content ? <DocumentList documents={content} row={row} params={params} change={change} /> : <Waiting error={error} />}
    </Section>
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
  /** The number of the run with which all others are compared. */
  reference: number | null;
  runs: RunEntry[];
  base: RunEntry | undefined;
  params: URLSearchParams;
}

function RunChoice({ report, reference, runs, base, params }: RunChoiceProps) {
  const set = (changes: Parameters<Change>[0]) => go(pageAddress("compare", changedParams(params, { flip: null, ...changes })));
  const choose = (run: RunEntry) => {
    const next = runs.includes(run) ? runs.filter((one) => one !== run) : [...runs, run];
    const names = report.runs.filter((one) => next.includes(one)).map((one) => one.name);
    set({ run: names.length ? names : [""], base: names.includes(params.get("base") ?? "") ? params.get("base") : null });
  };
  const short = shortNames(report.runs.map((run) => run.name));
  return (
    <div class="bar choice">
      <fieldset>
        <legend>Runs</legend>
        {report.runs.map((run, at) => (
          <label title={plain(run.name)}>
            <input
              type="checkbox"
              checked={runs.includes(run)}
              disabled={run.number === reference || run.live !== undefined || (!runs.includes(run) && runs.length >= MOST)}
              onChange={() => choose(run)}
            />{" "}
            {runs.includes(run) ? <RunName run={run} /> : <Text>{short[at]}</Text>}
          </label>
        ))}
      </fieldset>
      <label class="field">
        Baseline
        <select value={base?.name ?? ""} disabled={reference !== null} onChange={(event) => set({ base: event.currentTarget.value })}>
          {runs.length !== 2 && <option value="">none: all pairs</option>}
          {runs.map((run) => (
            <option value={run.name}>{plain(short[report.runs.indexOf(run)])}</option>
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
          Verdicts go by p corrected after Holm over {summary.rows === 1 ? "the one difference" : `all ${count(summary.rows)} differences`} of {summary.prefix ? "these runs" : "this report, whichever runs are shown here"}; intervals
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
