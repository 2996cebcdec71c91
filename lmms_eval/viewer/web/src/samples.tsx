// The list of samples: only the rows in sight are in the page, so that it stays smooth at 100,000.
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { Filters } from "./filters";
import { Picture } from "./media";
import { address, ALL, go, replace, type Route } from "./route";
import { search, type Progress } from "./search";
import { chosen, mainScore, readTable, STATUSES, type Table } from "./table";
import { count, number, plain, seconds, Text } from "./text";
import type { RunEntry } from "./types";
import { Waiting } from "./common";

export interface Listed {
  table: Table;
  rows: number[];
  progress: Progress | null;
}

/** The samples that the address asks for, in its order. */
export function useListed(run: RunEntry, taskName: string, params: URLSearchParams): { listed?: Listed; error?: string } {
  const [state, set] = useState<{ table?: Table; error?: string; key?: string }>({});
  const [progress, setProgress] = useState<Progress | null>(null);
  const key = `${run.number}/${taskName}`;
  const query = params.get("q") ?? "";
  const tasks = taskName === ALL ? run.tasks : run.tasks.filter((task) => task.name === taskName);
  const wanted = useRef(key);
  wanted.current = key;
  const next = useRef(0); // a large index is read again less often
  const versions = query && state.key === key ? "" : tasks.map((task) => `${task.samples}.${task.version ?? 0}`).join(" ");
  useEffect(() => {
    if (versions === "" && tasks.length) return; // what is searched stays as it is
    const read = () => {
      const begin = performance.now();
      const isWanted = () => wanted.current === key;
      readTable(run, tasks).then(
        (table) => {
          next.current = performance.now() + REST * (performance.now() - begin);
          if (isWanted()) set({ table, key });
        },
        (error: Error) => isWanted() && set((before) => (before.key === key && before.table ? before : { error: error.message, key })),
      );
    };
    const delay = state.key === key ? next.current - performance.now() : 0;
    if (delay <= 0) return read();
    const timer = setTimeout(read, delay);
    return () => clearTimeout(timer);
  }, [key, versions]);
  const table = state.key === key ? state.table : undefined;
  useEffect(() => {
    setProgress(null);
    if (!table || !query) return;
    let current = true;
    void (async () => {
      await new Promise((done) => setTimeout(done, 200)); // until the typing pauses
      try {
        for await (const found of search(table, query)) {
          if (!current) return;
          setProgress(found);
        }
      } catch (error) {
        if (current) set({ error: (error as Error).message, key });
      }
    })();
    return () => {
      current = false;
    };
  }, [table, query]);
  const matches = query ? (progress?.matches ?? new Set<number>()) : null;
  const shown = params.toString();
  const rows = useMemo(() => (table ? chosen(table, params, matches) : []), [table, shown, progress]);
  if (state.key === key && state.error) return { error: state.error };
  return table ? { listed: { table, rows, progress: query ? (progress ?? { done: 0, matches: new Set() }) : null } } : {};
}

export const rowAddress = (table: Table, row: number, params: URLSearchParams): string =>
  address([table.run.name, table.tasks[table.task[row] ?? 0]?.name, table.id[row]], params);

const REST = 10;
const ROW = 44;
const TILE = 168;

export function SamplesPage({ run, route }: { run: RunEntry; route: Route }) {
  const task = route.task ?? ALL;
  const { listed, error } = useListed(run, task, route.params);
  const known = task === ALL || run.tasks.some((one) => one.name === task);
  return (
    <main class="wide">
      <h1>
        <Text>{task === ALL ? "All tasks" : task}</Text>
      </h1>
      {!known && <Waiting error={`the run ${run.name} has no task of this name`} />}
      {known && !listed && <Waiting error={error} />}
      {known && listed && <List key={task} listed={listed} route={route} />}
    </main>
  );
}

function List({ listed, route }: { listed: Listed; route: Route }) {
  const { table, rows, progress } = listed;
  const params = route.params;
  const change = useCallback(
    (changes: Record<string, string | null>) => {
      const next = new URLSearchParams(params);
      for (const [name, value] of Object.entries(changes)) {
        if (value === null || value === "") next.delete(name);
        else next.set(name, value);
      }
      replace(address([route.run, route.task], next));
    },
    [route],
  );
  return (
    <>
      <Filters table={table} params={params} change={change} />
      <p class="quiet" role="status">
        {rows.length === table.count ? `${count(table.count)} samples` : `${count(rows.length)} of ${count(table.count)} samples`}
        {progress && progress.done < table.count && ` · searching: ${count(progress.done)} read`}
        {progress && table.run.live?.is_going && " · of those that had come when the search began"}
      </p>
      {rows.length === 0 && (!progress || progress.done >= table.count) && <p class="empty">No sample fits these filters.</p>}
      <Scroller table={table} rows={rows} params={params} change={change} />
    </>
  );
}

type Change = (changes: Record<string, string | null>) => void;

function Scroller({ table, rows, params, change }: { table: Table; rows: number[]; params: URLSearchParams; change: Change }) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600, width: 1000 });
  const [selected, select] = useState(0);
  const now = useRef(0); // keys come faster than the page is drawn
  const grid = params.get("view") === "grid";
  const across = grid ? Math.max(1, Math.floor(view.width / TILE)) : 1;
  const height = grid ? TILE : ROW;
  const lines = Math.ceil(rows.length / across);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const look = () => setView({ top: element.scrollTop, height: element.clientHeight, width: element.clientWidth });
    look();
    const watcher = new ResizeObserver(look);
    watcher.observe(element);
    element.addEventListener("scroll", look, { passive: true });
    return () => {
      watcher.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, []);

  useEffect(() => {
    const move = (by: number) => {
      const next = Math.max(0, Math.min(rows.length - 1, now.current + by));
      now.current = next;
      select(next);
      const top = Math.floor(next / across) * height;
      const element = box.current;
      if (element && (top < element.scrollTop || top + height > element.scrollTop + element.clientHeight - 40))
        element.scrollTop = Math.max(0, top - element.clientHeight / 2);
    };
    const pressed = (event: KeyboardEvent) => {
      if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey) return;
      const keys: Record<string, () => void> = {
        j: () => move(1),
        k: () => move(-1),
        ArrowDown: () => move(across),
        ArrowUp: () => move(-across),
        Enter: () => rows[now.current] !== undefined && go(rowAddress(table, rows[now.current] as number, params)),
        g: () => change({ view: grid ? null : "grid" }),
      };
      if (event.key === "Enter" && event.target instanceof HTMLElement && event.target.closest("a,button,summary")) return;
      const action = keys[event.key];
      if (action) {
        event.preventDefault();
        action();
      }
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [rows, across, params, change]);

  const first = Math.max(0, Math.floor(view.top / height) - 4);
  const last = Math.min(lines, Math.ceil((view.top + view.height) / height) + 4);
  const visible = rows.slice(first * across, last * across);
  const columns = columnsOf(table, params);
  return (
    <div class={`list ${grid ? "tiles" : ""}`} ref={box} tabIndex={0} role="region" aria-label="Samples">
      {!grid && <Heading columns={columns} params={params} change={change} />}
      <div class="space" style={{ height: `${lines * height}px` }}>
        <div class="window" style={{ transform: `translateY(${first * height}px)` }}>
          {visible.map((row, at) => {
            const place = first * across + at;
            const isSelected = place === selected;
            return grid ? (
              <Tile table={table} row={row} params={params} selected={isSelected} />
            ) : (
              <a
                key={row}
                class={`row ${isSelected ? "selected" : ""}`}
                href={rowAddress(table, row, params)}
                style={{ gridTemplateColumns: template(columns) }}
              >
                {columns.map((column) => (
                  <span class={column.class}>{column.cell(row)}</span>
                ))}
              </a>
            );
          })}
        </div>
      </div>
    </div>
  );
}

export const isTyping = (event: KeyboardEvent): boolean =>
  event.target instanceof HTMLElement && event.target.closest("input,select,textarea") !== null;

export interface ListColumn {
  key: string;
  name: string;
  width: string;
  class?: string;
  cell: (row: number) => preact.ComponentChildren;
}

/** All columns that a table has; which are shown stands in the address. */
export function allColumns(table: Table, params: URLSearchParams): ListColumn[] {
  const main = mainScore(table, params);
  const text = (values: string[]) => (row: number) => <Text>{values[row]}</Text>;
  const columns: ListColumn[] = [
    { key: "id", name: "Id", width: "minmax(56px, 96px)", cell: text(table.id) },
    { key: "task", name: "Task", width: "minmax(80px, 1fr)", cell: (row) => <Text>{table.tasks[table.task[row] ?? 0]?.name}</Text> },
    { key: "thumb", name: "Picture", width: "52px", cell: (row) => <Picture src={table.thumb[row]} /> },
    { key: `s.${main}`, name: plain(main.replace(/,none$/, "")) || "Score", width: "minmax(64px, 96px)", class: "number", cell: (row) => <ScoreCell table={table} row={row} main={main} /> },
    { key: "answer", name: "Answer", width: "minmax(90px, 3fr)", cell: text(table.answer) },
    { key: "target", name: "Reference", width: "minmax(80px, 2fr)", cell: text(table.target) },
    { key: "status", name: "Outcome", width: "84px", cell: (row) => <Status status={table.status[row] ?? 0} /> },
    { key: "finish", name: "Finish", width: "84px", cell: text(table.finish) },
    { key: "latency", name: "Latency", width: "76px", class: "number", cell: (row) => seconds(table.latency[row]) },
    { key: "in", name: "Tokens in", width: "84px", class: "number", cell: (row) => count(table.in[row]) },
    { key: "out", name: "Tokens out", width: "84px", class: "number", cell: (row) => count(table.out[row]) },
    { key: "reason", name: "Reason", width: "minmax(90px, 2fr)", cell: text(table.reason) },
  ];
  for (const name of table.scores.keys())
    if (name !== main)
      columns.push({ key: `s.${name}`, name: plain(name.replace(/,none$/, "")), width: "minmax(64px, 96px)", class: "number", cell: (row) => number(table.scores.get(name)?.[row]) });
  for (const [name, values] of table.metadata)
    columns.push({ key: `m.${name}`, name: plain(name), width: "minmax(72px, 1fr)", cell: (row) => <Text>{values[row] ?? ""}</Text> });
  return columns;
}

const some = (values: unknown[]): boolean => values.some((value) => value !== null && value !== "");

function isUseful(table: Table, key: string): boolean {
  const has: Record<string, () => boolean> = {
    task: () => table.tasks.length > 1,
    thumb: () => some(table.thumb),
    status: () => table.status.some((status) => status !== 0),
    latency: () => some(table.latency),
    out: () => some(table.out),
    reason: () => some(table.reason),
  };
  if (key === "finish" || key === "in") return false;
  return has[key]?.() ?? !key.startsWith("m.");
}

export function columnsOf(table: Table, params: URLSearchParams): ListColumn[] {
  const all = allColumns(table, params);
  const wanted = params.get("cols")?.split(" ");
  if (wanted) return all.filter((column) => wanted.includes(column.key) || column.key === "id");
  const main = mainScore(table, params);
  const narrow = window.innerWidth < 640;
  return all.filter((column) => isUseful(table, column.key) && (!column.key.startsWith("s.") || column.key === `s.${main}`))
    .filter((column) => !narrow || ["id", "thumb", `s.${main}`, "answer"].includes(column.key));
}

const template = (columns: ListColumn[]): string => columns.map((column) => column.width).join(" ");

function Heading({ columns, params, change }: { columns: ListColumn[]; params: URLSearchParams; change: Change }) {
  const by = params.get("sort");
  const down = params.get("down") !== null;
  const sort = (key: string) =>
    by !== key ? change({ sort: key, down: null }) : down ? change({ sort: null, down: null }) : change({ down: "1" });
  return (
    <div class="row head" style={{ gridTemplateColumns: template(columns) }}>
      {columns.map((column) => (
        <button class={`heading ${column.class ?? ""}`} onClick={() => column.key !== "thumb" && sort(column.key)}>
          {column.name}
          <span aria-hidden="true">{by === column.key ? (down ? " ↓" : " ↑") : ""}</span>
        </button>
      ))}
    </div>
  );
}

export function Status({ status }: { status: number }) {
  return <span class={`badge ${status === 2 ? "grave" : status === 1 ? "mild" : ""}`}>{STATUSES[status]}</span>;
}

function ScoreCell({ table, row, main }: { table: Table; row: number; main: string }) {
  const value = table.scores.get(main)?.[row] ?? null;
  return <span class={tone(table, value, main)}>{number(value)}</span>;
}

/** Full marks and none are marked; the scale is that of the column. */
function tone(table: Table, value: number | null, main: string): string {
  if (value === null) return "quiet";
  if (value === 0) return "wrong";
  return value === 1 || (value === 100 && !main.includes("_fixed")) ? "right" : table.count ? "partly" : "";
}

function Tile({ table, row, params, selected }: { table: Table; row: number; params: URLSearchParams; selected: boolean }) {
  const main = mainScore(table, params);
  return (
    <a class={`tile ${selected ? "selected" : ""}`} href={rowAddress(table, row, params)}>
      <Picture src={table.thumb[row]} />
      <span class="caption">
        <ScoreCell table={table} row={row} main={main} /> <Text>{table.answer[row] || table.id[row]}</Text>
      </span>
    </a>
  );
}
