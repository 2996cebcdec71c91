// Filters of the list of samples, which the address holds.
import { useState } from "preact/hooks";

import { go, address, ALL } from "./route";
import { allColumns, columnsOf, Dot, metadataName, metricName } from "./cells";
import { useValues } from "./listed";
import { Headline, mainScore, STATUSES, VERDICTS, type Table } from "./table";
import type { Change } from "./samples";
import { capital, count, plain } from "./text";
import type { Verdict } from "./types";

/** What the address holds besides filters. */
const NO_FILTERS = ["q", "view", "sort", "down", "cols", "metric", "verdict"];
/** Columns of metadata that are filters of their own; the others are below "More". */
const MOST_SHOWN = 4;
const MOST_VALUES = 24;

export function Filters({ table, params, change }: { table: Table; params: URLSearchParams; change: Change }) {
  const given = [...params.keys()].filter((name) => !NO_FILTERS.includes(name));
  const [open, toggle] = useState(given.length > 0);
  const kept = ["view", "cols", "metric"];
  const clear = Object.fromEntries([...params.keys()].filter((name) => !kept.includes(name)).map((name) => [name, null]));
  return (
    <div class="filters">
      <Verdicts table={table} params={params} change={change} />
      <div class="bar">
        <TaskChoice table={table} params={params} />
        <input
          id="search"
          type="search"
          placeholder="Search prompts, answers, references  ( / )"
          aria-label="Search in texts"
          value={params.get("q") ?? ""}
          onInput={(event) => change({ q: event.currentTarget.value })}
        />
        <button aria-expanded={open} onClick={() => toggle(!open)}>
          Filters{given.length > 0 && ` (${given.length})`}
        </button>
        <button aria-pressed={params.get("view") === "grid"} onClick={() => change({ view: params.get("view") === "grid" ? null : "grid" })}>
          Grid
        </button>
        <Columns table={table} params={params} change={change} />
        {(given.length > 0 || ["q", "sort", "verdict"].some((name) => params.has(name))) && (
          <button class="link" onClick={() => change(clear)}>
            Clear
          </button>
        )}
      </div>
      {open && <Fields table={table} params={params} change={change} />}
    </div>
  );
}

const ONLY: Partial<Record<Verdict, string>> = { wrong: "Wrong only" };

/** One click for the samples with one verdict, with how many there are. */
function Verdicts({ table, params, change }: { table: Table; params: URLSearchParams; change: Change }) {
  const now = params.get("verdict");
  const counts = new Headline(table, params).counts();
  const shown = VERDICTS.filter((verdict) => counts.has(verdict) || verdict === now || (verdict === "wrong" && counts.has("correct")));
  if (!shown.length) return null;
  return (
    <div class="verdicts" role="group" aria-label="Verdict">
      <button aria-pressed={!now} onClick={() => change({ verdict: null })}>
        All <small>{count(table.count)}</small>
      </button>
      {shown.map((verdict) => (
        <button aria-pressed={now === verdict} onClick={() => change({ verdict: now === verdict ? null : verdict })}>
          <Dot verdict={verdict} />
          {ONLY[verdict] ?? capital(verdict)} <small>{count(counts.get(verdict) ?? 0)}</small>
        </button>
      ))}
    </div>
  );
}

function Fields({ table, params, change }: { table: Table; params: URLSearchParams; change: Change }) {
  const scores = table.names("s.");
  const values = useValues(table, true);
  const finishes = values("finish");
  const metadata = table.names("m.").filter((name) => values(`m.${name}`).length > 1 || params.has(`m.${name}`));
  const first = metadata.filter((name) => !name.startsWith("audit.") && values(`m.${name}`).length <= MOST_VALUES).slice(0, MOST_SHOWN);
  const more = metadata.filter((name) => !first.includes(name));
  const choice = (name: string) => (
    <Choice label={metadataName(name)} title={plain(name)} name={`m.${name}`} values={values(`m.${name}`)} params={params} change={change} />
  );
  return (
    <div class="bar fields">
      {scores.length > 1 && (
        <label class="field">
          Metric
          <select value={mainScore(table, params)} onChange={(event) => change({ metric: event.currentTarget.value })}>
            {scores.map((name) => (
              <option value={name}>{metricName(name)}</option>
            ))}
          </select>
        </label>
      )}
      <Range label="Score" name="score" params={params} change={change} />
      <label class="field">
        Answer is
        <input value={params.get("answer") ?? ""} onInput={(event) => change({ answer: event.currentTarget.value })} />
      </label>
      {first.map(choice)}
      <details class="more" open={[...more.map((name) => `m.${name}`), "status", "finish", ...RANGES].some((name) => params.has(name))}>
        <summary>More</summary>
        <div class="bar">
          <Choice label="Status" name="status" values={STATUSES} params={params} change={change} />
          {finishes.length > 0 && <Choice label="Finish" name="finish" values={finishes} params={params} change={change} />}
          <Range label="Latency (s)" name="latency" params={params} change={change} />
          <Range label="Tokens out" name="tokens" params={params} change={change} />
          {more.map(choice)}
        </div>
      </details>
    </div>
  );
}

const RANGES = ["latency.min", "latency.max", "tokens.min", "tokens.max"];

function TaskChoice({ table, params }: { table: Table; params: URLSearchParams }) {
  const { run } = table;
  if (run.tasks.length < 2) return null;
  const now = table.tasks.length > 1 ? ALL : (table.tasks[0]?.name ?? ALL);
  return (
    <select aria-label="Task" value={now} onChange={(event) => go(address([run.name, event.currentTarget.value], params))}>
      <option value={ALL}>All tasks</option>
      {run.tasks.map((task) => (
        <option value={task.name}>{plain(task.name)}</option>
      ))}
    </select>
  );
}

interface FieldProps {
  label: string;
  title?: string;
  name: string;
  params: URLSearchParams;
  change: Change;
}

export function Choice({ label, title, name, values, params, change }: FieldProps & { values: string[] }) {
  return (
    <label class="field" title={title}>
      {label}
      <select value={params.get(name) ?? ""} onChange={(event) => change({ [name]: event.currentTarget.value })}>
        <option value="">any</option>
        {values.map((value) => (
          <option value={value}>{plain(value)}</option>
        ))}
      </select>
    </label>
  );
}

function Range({ label, name, params, change }: FieldProps) {
  const end = (which: "min" | "max") => (
    <input
      type="number"
      step="any"
      aria-label={`${label}, ${which === "min" ? "from" : "to"}`}
      placeholder={which === "min" ? "from" : "to"}
      value={params.get(`${name}.${which}`) ?? ""}
      onInput={(event) => change({ [`${name}.${which}`]: event.currentTarget.value })}
    />
  );
  return (
    <span class="field">
      {label}
      <span class="range">
        {end("min")}
        {end("max")}
      </span>
    </span>
  );
}

function Columns({ table, params, change }: { table: Table; params: URLSearchParams; change: Change }) {
  const shown = new Set(columnsOf(table, params).map((column) => column.key));
  const toggle = (key: string) => {
    const next = new Set(shown);
    if (!next.delete(key)) next.add(key);
    change({ cols: [...next].join(" ") });
  };
  return (
    <details class="menu">
      <summary>Columns</summary>
      <div class="choices">
        {allColumns(table, params).map((column) => (
          <label title={column.title}>
            <input type="checkbox" checked={shown.has(column.key)} onChange={() => toggle(column.key)} /> {column.name}
          </label>
        ))}
      </div>
    </details>
  );
}
