// One document of several runs side by side: what was asked once, and what each run answered.
import type { Change } from "./compare";
import { useLoaded, Waiting } from "./common";
import { VerdictLabel } from "./cells";
import { chosenDocuments, documentAddress, listAddress, ScoreOf, useChoice } from "./documents";
import { useColumns, useRow } from "./listed";
import { changedParams, useDocuments, type Difference, type Documents, type Summary } from "./pairs";
import { address, pageAddress, replace } from "./route";
import { RunName } from "./name";
import { Pre } from "./pre";
import { Answer } from "./answers";
import { Block, Document } from "./blocks";
import { Asked as Conversation } from "./conversation";
import { Steps } from "./sample";
import { Metrics } from "./scores";
import { labelOf } from "./amounts";
import { verdictOf } from "./table";
import { Text, told } from "./text";
import type { RunEntry, Sample, TaskEntry } from "./types";

interface SidesProps {
  summary: Summary;
  runs: RunEntry[];
  base: RunEntry | undefined;
  row: Difference;
  params: URLSearchParams;
}

export function SidesPage({ summary, runs, base, row, params }: SidesProps) {
  const { content, error } = useDocuments(summary, runs, base, row);
  const table = content?.tables[0];
  const { content: place, error: unknown } = useRow(table, params.get("doc") ?? "");
  const { ready, error: unread } = useChoice(content, params);
  if (!content || place === undefined || !ready) return <main><Waiting error={error ?? unknown ?? unread} /></main>;
  const document = content.places[0]?.indexOf(place) ?? -1;
  const change: Change = (changes) => replace(pageAddress("compare", changedParams(params, changes)));
  if (place < 0 || document < 0) return <main><Waiting error={`these runs share no document ${params.get("doc")} of ${row.name}`} /></main>;
  return <Found key={content.runs.map((run) => run.number).join()} documents={content} document={document} base={base} row={row} params={params} change={change} />;
}

interface FoundProps {
  documents: Documents;
  document: number;
  base: RunEntry | undefined;
  row: Difference;
  params: URLSearchParams;
  change: Change;
}

function Found({ documents, document, base, row, params, change }: FoundProps) {
  const rows = chosenDocuments(documents, params);
  const at = rows.indexOf(document);
  const near = rows.slice(Math.max(0, at - 1), at + 2).map((one) => documents.places[0]?.[one] ?? -1);
  useColumns(documents.tables[0], ["id"], near);
  const step = (by: number): string | undefined => {
    const next = rows[at + by];
    return at < 0 || next === undefined ? undefined : documentAddress(documents, next, params);
  };
  const lead = Math.max(0, base ? documents.runs.indexOf(base) : 0);
  const samples = documents.runs.map((_, run) => useSample(documents, run, document));
  const asked = samples[0]?.sample;
  const marks = params.get("marks") === "reference" ? "reference" : "baseline";
  return (
    <main class="wide">
      <Steps back={listAddress(params)} step={step} at={at} of={rows.length} />
      <h1>
        <Text>{params.get("doc")}</Text>
      </h1>
      <p class="quiet">
        <Text>{labelOf(row)}</Text>
      </p>
      <div class="sample">
        <div>
          <Asked sample={asked} error={samples[0]?.error} />
        </div>
        <div>
          <label class="field">
            Marked words differ from
            <select value={marks} onChange={(event) => change({ marks: event.currentTarget.value })}>
              <option value="baseline">{base ? "the baseline's" : "the first run's"} answer</option>
              <option value="reference">the reference</option>
            </select>
          </label>
          <div class="sides">
            {documents.runs.map((run, number) => (
              <Side
                key={run.number}
                documents={documents}
                document={document}
                run={number}
                loaded={samples[number] ?? {}}
                asked={asked}
                marked={marks === "baseline" && number !== lead ? { ...samples[lead], name: documents.runs[lead]?.name ?? "" } : undefined}
              />
            ))}
          </div>
        </div>
      </div>
    </main>
  );
}

interface LoadedSample {
  sample?: Sample;
  error?: string;
}

function useSample(documents: Documents, run: number, document: number): LoadedSample {
  const task = documents.tables[run]?.tasks[0] as TaskEntry;
  const place = documents.places[run]?.[document] ?? -1;
  // A run without the document shows that: the piece of another place is loaded, and not looked at.
  const { content, error } = useLoaded<Sample[]>(`text-${task.key}-${Math.floor(Math.max(0, place) / task.per_text)}`);
  return { sample: place < 0 ? undefined : content?.[place % task.per_text], error };
}

const lineOf = (sample: Sample | undefined) => sample?.lines[0] ?? {};

function Asked({ sample, error }: LoadedSample) {
  if (!sample) return <Waiting error={error} />;
  const line = lineOf(sample);
  return (
    <>
      <Block title="Prompt">
        <Conversation sample={sample} shapes={(sample.shapes ?? []).filter((shape) => shape.of === "reference")} />
      </Block>
      <Block title="Reference">
        <Pre>{told(line.target)}</Pre>
      </Block>
      <Document doc={line.doc} />
    </>
  );
}

interface SideProps {
  documents: Documents;
  document: number;
  run: number;
  loaded: LoadedSample;
  asked: Sample | undefined;
  /** The run with whose answer this one is compared; else with the reference. */
  marked: (LoadedSample & { name: string }) | undefined;
}

function Side({ documents, document, run, loaded, asked, marked }: SideProps) {
  const entry = documents.runs[run] as RunEntry;
  const table = documents.tables[run];
  const place = documents.places[run]?.[document] ?? -1;
  const score = `s.${documents.columns[run] ?? ""}`;
  useColumns(table, ["id", "status", score], [place]);
  const status = table?.text("status", place);
  const verdict = status === "failed" || status === "unscored" ? status : table ? verdictOf(table.number(score, place), table.facts(0, score)?.ends) : null;
  const title = (
    <h2>
      <a href={address([entry.name, table?.tasks[0]?.name, table?.text("id", place)])}>
        <RunName run={entry} />
      </a>
    </h2>
  );
  if (place < 0)
    return (
      <section class="side">
        <h2>
          <RunName run={entry} />
        </h2>
        <p class="empty">The report does not hold this document of the run.</p>
      </section>
    );
  const { sample, error } = loaded;
  const line = lineOf(sample);
  const target = told(marked ? lineOf(marked.sample).filtered_resps : line.target);
  return (
    <section class="side">
      {title}
      <p>
        {verdict && <VerdictLabel verdict={verdict} />} <ScoreOf documents={documents} row={document} run={run} />
      </p>
      {sample ? (
        <>
          <Answer sample={sample} target={target} than={marked ? `the answer of ${marked.name}` : "the reference"} />
          <More sample={sample} asked={asked} />
        </>
      ) : (
        <Waiting error={error} />
      )}
    </section>
  );
}

/** What a run adds to its parsed answer: why it has no score, the raw answer, its scores, another prompt. */
function More({ sample, asked }: { sample: Sample; asked: Sample | undefined }) {
  const line = lineOf(sample);
  const raw = told(line.resps);
  const prompt = told(line.input);
  return (
    <>
      {(line.error || line.reason) && <Pre grave>{told(line.error) || told(line.reason)}</Pre>}
      {raw && raw !== told(line.filtered_resps) && (
        <details>
          <summary>Raw answer</summary>
          <Pre>{raw}</Pre>
        </details>
      )}
      {asked && asked !== sample && prompt !== told(lineOf(asked).input) && (
        <details>
          <summary>Asked with another prompt</summary>
          <Pre>{prompt}</Pre>
        </details>
      )}
      <details>
        <summary>Scores</summary>
        {sample.lines.map((one) => (
          <Metrics line={one} several={sample.lines.length > 1} />
        ))}
      </details>
    </>
  );
}
