// The list of documents that the compared runs share.
import { useMemo } from "preact/hooks";

import { isNarrow, metadataName, Thumbnail } from "./cells";
import { Choice } from "./filters";
import type { Change } from "./compare";
import { Waiting } from "./common";
import { useColumns, useValues } from "./listed";
import { RunName, useNames } from "./name";
import { changedParams, isChanged, type Difference, type Documents } from "./pairs";
import { pageAddress } from "./route";
import { capital, count, number, plain, Text } from "./text";
import type { RunEntry } from "./types";
import { VirtualList } from "./virtual";

const ROW = 40;

export const documentAddress = (documents: Documents, row: number, params: URLSearchParams): string =>
  pageAddress("compare", changedParams(params, { doc: documents.tables[0]?.text("id", documents.places[0]?.[row] ?? -1) ?? "" }));

interface ListProps {
  documents: Documents;
  row: Difference;
  params: URLSearchParams;
  change: Change;
}

/** The address of the list that holds a document. */
export const listAddress = (params: URLSearchParams): string => pageAddress("compare", changedParams(params, { doc: null, marks: null }));

/** Whether the columns are there by which the address chooses documents. */
export function useChoice(documents: Documents | undefined, params: URLSearchParams): { ready: boolean; error?: string } {
  const table = documents?.tables[0];
  const keys = [...params.keys()].filter((name) => name.startsWith("m.") && table?.columns.has(name));
  return useColumns(table, params.get("id") ? [...keys, "id"] : keys);
}

export function DocumentList({ documents, row, params, change }: ListProps) {
  const { ready, error } = useChoice(documents, params);
  if (!ready) return <Waiting error={error} />;
  return <Chosen documents={documents} row={row} params={params} change={change} />;
}

function Chosen({ documents, row, params, change }: ListProps) {
  const rows = useMemo(() => chosenDocuments(documents, params), [documents, params.toString()]);
  const all = documents.places[0]?.length ?? 0;
  return (
    <>
      <Filters documents={documents} row={row} params={params} change={change} />
      <p class="quiet" role="status">
        {rows.length === all ? `${count(all)} documents` : `${count(rows.length)} of ${count(all)} documents`}
      </p>
      {rows.length === 0 ? (
        <p class="empty">No document matches these filters.</p>
      ) : (
        <VirtualList
          name={listAddress(params)}
          count={rows.length}
          height={ROW}
          label="Documents"
          heading={<Heading documents={documents} />}
          address={(place) => documentAddress(documents, rows[place] ?? 0, params)}
          item={(place, selected) => <Row key={rows[place]} documents={documents} row={rows[place] ?? 0} selected={selected} params={params} />}
        />
      )}
    </>
  );
}

/** Kinds by which documents are chosen, with the test of each; of several runs by who has a document right. */
export function kindsOf(
  documents: Documents,
  named = (run: RunEntry): string => plain(run.name),
): Map<string, { text: string; fits: (row: number) => boolean }> {
  const [first, ...others] = documents.runs.map(named);
  const known = new Set(documents.kinds.flat());
  const { binary } = documents;
  const found = new Map<string, { text: string; fits: (row: number) => boolean }>();
  const [only] = documents.kinds;
  if (documents.kinds.length === 1 && only) {
    const texts: [string, string][] = binary
      ? [["f", `only ${first} right`], ["s", `only ${others[0]} right`], ["b", "both right"], ["n", "both wrong"]]
      : [[">", `${first} better`], ["<", `${others[0]} better`], ["=", "equal"]];
    found.set("changed", { text: "changed", fits: (row) => isChanged(only[row] ?? "") });
    if (binary) found.set("wrong", { text: "wrong in a run", fits: (row) => "fsn".includes(only[row] || "-") });
    for (const [kind, text] of [...texts, ["-", "without a score on a side"] as const])
      if (known.has(kind)) found.set(kind, { text, fits: (row) => only[row] === kind });
    return found;
  }
  const at = (row: number): string[] => documents.kinds.map((kinds) => kinds[row] ?? "");
  found.set("changed", { text: "changed", fits: (row) => at(row).some(isChanged) });
  if (!binary) {
    found.set("=", { text: "all equal", fits: (row) => at(row).every((kind) => kind === "=" || kind === "b" || kind === "n") });
    return found;
  }
  const right = (row: number): (boolean | null)[] => {
    const kinds = at(row);
    const mine = kinds.find((kind) => "bfsn".includes(kind) && kind);
    return [mine === undefined ? null : mine === "b" || mine === "f", ...kinds.map((kind) => (kind && kind !== "-" ? kind === "b" || kind === "s" : null))];
  };
  const every = (wanted: (run: number) => boolean) => (row: number) => right(row).every((one, run) => one === wanted(run));
  found.set("wrong", { text: "wrong in a run", fits: (row) => right(row).some((one) => one === false) });
  found.set("b", { text: "all right", fits: every(() => true) });
  found.set("n", { text: "all wrong", fits: every(() => false) });
  documents.runs.forEach((run, number) => {
    found.set(`right ${run.number}`, { text: `only ${named(run)} right`, fits: every((other) => other === number) });
    found.set(`wrong ${run.number}`, { text: `only ${named(run)} wrong`, fits: every((other) => other !== number) });
  });
  return found;
}

/** Rows of the documents that the address asks for: the largest changes first. */
export function chosenDocuments(documents: Documents, params: URLSearchParams): number[] {
  const [table] = documents.tables;
  const places = documents.places[0] ?? [];
  if (!table) return [];
  const tests: ((row: number) => boolean)[] = [];
  const flip = params.get("flip");
  if (flip) tests.push(kindsOf(documents).get(flip)?.fits ?? (() => false));
  const id = params.get("id")?.toLowerCase();
  if (id) tests.push((row) => table.text("id", places[row] ?? -1).toLowerCase().includes(id));
  for (const [name, value] of params) {
    const column = name.startsWith("m.") ? table.columns.get(name) : undefined;
    if (column && value !== "") tests.push((row) => column.at(places[row] ?? -1) === value);
  }
  const rows = places.map((_, row) => row).filter((row) => tests.every((test) => test(row)));
  if (params.get("sort") === "id") return rows;
  const bits = (row: number): number => documents.surprise[row] || -1;
  return rows.sort((a, b) => bits(b) - bits(a) || a - b);
}

function Filters({ documents, params, change }: ListProps) {
  const table = documents.tables[0];
  const given = [...params.keys()].filter((name) => name.startsWith("m."));
  const values = useValues(table, true);
  const columns = (table?.names("m.") ?? []).filter((name) => values(`m.${name}`).length > 1 || params.has(`m.${name}`));
  return (
    <div class="filters">
      <Kinds documents={documents} params={params} change={change} />
      <div class="bar">
        <input
          id="search"
          type="search"
          placeholder="Find an id  ( / )"
          aria-label="Find an id"
          value={params.get("id") ?? ""}
          onInput={(event) => change({ id: event.currentTarget.value })}
        />
        {documents.kinds.length === 1 && (
          <label class="field">
            Order
            <select value={params.get("sort") ?? ""} onChange={(event) => change({ sort: event.currentTarget.value })}>
              <option value="">largest changes first</option>
              <option value="id">task order</option>
            </select>
          </label>
        )}
      </div>
      {columns.length > 0 && (
        <details open={given.length > 0}>
          <summary>Filters{given.length > 0 && ` (${given.length})`}</summary>
          <div class="bar fields">
            {columns.map((name) => (
              <Choice label={metadataName(name)} title={plain(name)} name={`m.${name}`} values={values(`m.${name}`)} params={params} change={change} />
            ))}
          </div>
        </details>
      )}
    </div>
  );
}

/** Kinds that are one click away; of more than two runs the others are in a list. */
const MOST_KINDS = 7;
const ONLY: Record<string, string> = { changed: "Changed only", wrong: "Wrong only" };

/** One click for the documents that changed, or on which the runs agree. */
function Kinds({ documents, params, change }: { documents: Documents; params: URLSearchParams; change: Change }) {
  const now = params.get("flip") ?? "";
  const { letter } = useNames();
  const kinds = useMemo(() => {
    const rows = (documents.places[0] ?? []).map((_, row) => row);
    return [...kindsOf(documents, letter)].map(([kind, { text, fits }]) => ({ kind, text: ONLY[kind] ?? capital(text), documents: rows.filter(fits).length }));
  }, [documents, letter]);
  const first = kinds.length > MOST_KINDS ? kinds.slice(0, 4) : kinds;
  const more = kinds.slice(first.length);
  return (
    <div class="verdicts" role="group" aria-label="Documents">
      <button aria-pressed={!now} onClick={() => change({ flip: null })}>
        All <small>{count(documents.places[0]?.length ?? 0)}</small>
      </button>
      {first.map((one) => (
        <button aria-pressed={now === one.kind} onClick={() => change({ flip: now === one.kind ? null : one.kind })}>
          {one.text} <small>{count(one.documents)}</small>
        </button>
      ))}
      {more.length > 0 && (
        <select aria-label="Only one run right or wrong" value={more.some(({ kind }) => kind === now) ? now : ""} onChange={(event) => change({ flip: event.currentTarget.value })}>
          <option value="">Only one run…</option>
          {more.map((one) => (
            <option value={one.kind}>
              {one.text} ({count(one.documents)})
            </option>
          ))}
        </select>
      )}
    </div>
  );
}

const template = (documents: Documents): string =>
  `${isNarrow() ? "minmax(32px, 64px)" : "minmax(64px, 120px)"} ${hasPictures(documents) ? "64px " : ""}repeat(${documents.runs.length}, minmax(0, 1fr))`;

const hasPictures = (documents: Documents): boolean =>
  !isNarrow() && !(documents.tables[0]?.columns.get("thumb")?.isEmpty ?? true);

const Heading = ({ documents }: { documents: Documents }) => (
  <div class="row head" style={{ gridTemplateColumns: template(documents) }}>
    <span>Id</span>
    {hasPictures(documents) && <span />}
    {documents.runs.map((run) => (
      <span>
        <RunName run={run} folds />
      </span>
    ))}
  </div>
);

function Row({ documents, row, selected, params }: { documents: Documents; row: number; selected: boolean; params: URLSearchParams }) {
  const [table] = documents.tables;
  const place = documents.places[0]?.[row] ?? -1;
  useColumns(table, ["id", "thumb", "masks"], [place]);
  return (
    <a
      class={`row ${selected ? "selected" : ""}`}
      href={documentAddress(documents, row, params)}
      style={{ gridTemplateColumns: template(documents) }}
    >
      <span>
        <Text>{table?.text("id", place)}</Text>
      </span>
      {hasPictures(documents) && (
        <span>
          {table && <Thumbnail table={table} row={place} />}
        </span>
      )}
      {documents.runs.map((_, run) => (
        <Said documents={documents} row={row} run={run} />
      ))}
    </a>
  );
}

/** Score and answer of a run in a list. */
function Said({ documents, row, run }: { documents: Documents; row: number; run: number }) {
  const table = documents.tables[run];
  const place = documents.places[run]?.[row] ?? -1;
  useColumns(table, ["answer"], [place]);
  if (!table || place < 0) return <span class="quiet">–</span>;
  return (
    <span>
      <ScoreOf documents={documents} row={row} run={run} /> {!(isNarrow() && documents.runs.length > 2) && <Text>{table.text("answer", place)}</Text>}
    </span>
  );
}

/** The score of a run, coloured by the kind of the document: right or wrong, better or worse. */
export function ScoreOf({ documents, row, run }: { documents: Documents; row: number; run: number }) {
  const place = documents.places[run]?.[row] ?? -1;
  const table = documents.tables[run];
  const key = `s.${documents.columns[run] ?? ""}`;
  useColumns(table, [key], [place]);
  const score = table?.number(key, place) ?? null;
  return <b class={toneOf(documents, row, run)}>{number(score)}</b>;
}

function toneOf(documents: Documents, row: number, run: number): string {
  if (documents.kinds.length > 1 && !documents.binary) return "";
  const kinds = documents.kinds.map((one) => one[row] ?? "");
  const kind = run === 0 ? (kinds.find((one) => one && one !== "-") ?? "") : (kinds[run - 1] ?? "");
  if (kind === "b" || kind === (run === 0 ? "f" : "s")) return "right";
  if (kind === "n" || kind === (run === 0 ? "s" : "f")) return "wrong";
  return kind === (run === 0 ? ">" : "<") ? "right" : kind === (run === 0 ? "<" : ">") ? "wrong" : "";
}
