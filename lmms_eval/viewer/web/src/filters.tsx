// Filters of the list of samples. What they say stands in the address.
import { useState } from "preact/hooks";

import { go, address, ALL } from "./route";
import { allColumns, columnsOf } from "./cells";
import { useValues } from "./listed";
import { mainScore, STATUSES, type Table } from "./table";
import type { Change } from "./samples";
import { plain } from "./text";

export function Filters({ table, params, change }: { table: Table; params: URLSearchParams; change: Change }) {
  const given = [...params.keys()].filter((name) => !["q", "view", "sort", "down", "cols", "metric"].includes(name));
  const [open, toggle] = useState(given.length > 0);
  const scores = table.names("s.");
  const values = useValues(table, open);
  const finishes = values("finish");
  const clear = Object.fromEntries([...params.keys()].filter((name) => !["view", "cols", "metric"].includes(name)).map((name) => [name, null]));
  return (
    <div class="filters">
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
        {(given.length > 0 || params.has("q") || params.has("sort")) && (
          <button class="link" onClick={() => change(clear)}>
            Clear
          </button>
        )}
      </div>
      {open && (
        <div class="bar fields">
          <Choice label="Outcome" name="status" values={STATUSES} params={params} change={change} />
          {scores.length > 1 && (
            <label class="field">
              Score
              <select value={mainScore(table, params)} onChange={(event) => change({ metric: event.currentTarget.value })}>
                {scores.map((name) => (
                  <option value={name}>{plain(name)}</option>
                ))}
              </select>
            </label>
          )}
          <Range label={scores.length > 1 ? "Between" : "Score"} name="score" params={params} change={change} />
          <Range label="Latency (s)" name="latency" params={params} change={change} />
          <Range label="Tokens out" name="tokens" params={params} change={change} />
          {finishes.length > 0 && <Choice label="Finish" name="finish" values={finishes} params={params} change={change} />}
          <label class="field">
            Answer is
            <input value={params.get("answer") ?? ""} onInput={(event) => change({ answer: event.currentTarget.value })} />
          </label>
          {table.names("m.").map((name) => {
            const known = values(`m.${name}`);
            if (known.length < 2 && !params.has(`m.${name}`)) return null;
            return <Choice label={plain(name)} name={`m.${name}`} values={known} params={params} change={change} />;
          })}
        </div>
      )}
    </div>
  );
}

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
  name: string;
  params: URLSearchParams;
  change: Change;
}

export function Choice({ label, name, values, params, change }: FieldProps & { values: string[] }) {
  return (
    <label class="field">
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
          <label>
            <input type="checkbox" checked={shown.has(column.key)} onChange={() => toggle(column.key)} /> {column.name}
          </label>
        ))}
      </div>
    </details>
  );
}
