// Small parts that several pages share.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { load, onChange } from "./chunks";
import { Tabled } from "./tabled";
import { alike, plain, Text } from "./text";
import type { Cell, Warning } from "./types";

export { Waiting } from "./waiting";

export type Loaded<T> = { content?: T; error?: string };

/** A piece, loaded again when it has changed. An empty name loads nothing. */
export function useLoaded<T>(name: string): Loaded<T> {
  const times = useChanges([name]);
  return useMade<T>(name, () => (name ? load<T>(name) : new Promise<T>(() => {})), times);
}

/** Counts the times at which one of these pieces has changed. */
export function useChanges(names: string[]): number {
  const [times, set] = useState(0);
  useLayoutEffect(() => onChange((hasChanged) => names.some(hasChanged) && set((before) => before + 1)), [names.join()]);
  return times;
}

interface Made<T> extends Loaded<T> {
  key?: string;
  version?: number;
  /** When it may be made again: after so many times as long as it took. */
  next?: number;
}

const REST = 10;

/** What is made from loaded pieces; `key` names it. Of another version what is there stays until the new one is made. */
export function useMade<T>(key: string, make: () => Promise<T>, version = 0): Loaded<T> {
  const [state, set] = useState<Made<T>>({});
  const wanted = useRef(key);
  const making = useRef<string | null>(null);
  const gone = useRef(false);
  wanted.current = key;
  const isThere = state.key === key;
  useEffect(() => {
    if (making.current === key || (isThere && state.version === version)) return;
    const begin = async () => {
      const start = performance.now();
      making.current = key;
      const found: Loaded<T> = await make().then(
        (content) => ({ content }),
        (error: Error) => ({ error: error.message }),
      );
      if (making.current === key) making.current = null;
      const end = performance.now();
      const made = { key, version, next: end + REST * (end - start) };
      if (wanted.current === key && !gone.current)
        set((before) => (found.error && before.key === key && before.content ? { ...before, ...made } : { ...found, ...made }));
    };
    const delay = isThere ? (state.next ?? 0) - performance.now() : 0;
    if (delay <= 0) return void begin();
    const timer = setTimeout(() => void begin(), delay);
    return () => clearTimeout(timer);
  }, [key, version, state]);
  useEffect(() => () => void (gone.current = true), []);
  return isThere ? state : {};
}

export function Section({ title, children, id }: { title: string; children: ComponentChildren; id?: string }) {
  return (
    <section id={id}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

/** A number with its interval below it. */
export function Score({ cell, shown = alike([cell.value, cell.low, cell.high]) }: { cell: Cell & { withheld?: string; partial?: number | null }; shown?: (value: number) => string }) {
  if (cell.value === null)
    return (
      <span class="score" title={cell.withheld}>
        {cell.withheld ? "withheld" : "–"}
      </span>
    );
  const interval = cell.low !== null && cell.high !== null ? `${shown(cell.low)} – ${shown(cell.high)}` : cell.method;
  return (
    <span
      class="score"
      title={cell.about && `95 % interval about ${cell.about}`}
      data-value={cell.value}
      data-low={cell.low ?? undefined}
      data-high={cell.high ?? undefined}
    >
      <b>{shown(cell.value)}</b>
      <small class={cell.low === null ? "reason" : undefined}>{interval}</small>
      {cell.missing && <small title="95 % bounds whatever the documents without a score would score">{cell.missing}</small>}
    </span>
  );
}

const KINDS = ["problem", "state", "withheld", "failed", "early", "unscored", "not_asked", "fixed", "answers"];
const isGrave = (one: Warning): boolean => KINDS.indexOf(one.kind) < KINDS.indexOf("early");

/** What warnings of one kind say of several tasks. */
const TITLES: Record<string, (tasks: string) => string> = {
  withheld: (tasks) => `Score withheld: ${tasks} failed`,
  failed: (tasks) => `Samples failed in ${tasks}`,
  unscored: (tasks) => `Samples without a score in ${tasks}`,
  not_asked: (tasks) => `Samples not asked in ${tasks}`,
  fixed: (tasks) => `Official and repaired rule differ in ${tasks}`,
  answers: (tasks) => `Warning about the answers of ${tasks}`,
};

/** One box for each cause, the gravest first. */
function causes(warnings: Warning[]): Warning[][] {
  const found = new Map<string, Warning[]>();
  for (const one of [...warnings].sort((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind))) {
    const key = one.short && TITLES[one.kind] ? `${one.kind}\n${one.cause}` : `${one.kind}\n${one.task}\n${one.text}`;
    found.set(key, [...(found.get(key) ?? []), one]);
  }
  return [...found.values()];
}

/** Sentences to be warned by, the gravest first; those of one cause share a box. */
export function Warnings({ warnings, most = 6 }: { warnings: Warning[]; most?: number }) {
  const [all, show] = useState(false);
  if (!warnings.length) return null;
  const boxes = causes(warnings);
  const shown = all ? boxes : boxes.slice(0, most);
  return (
    <ul class="warnings">
      {shown.map((box) => (
        <li class={box[0] && isGrave(box[0]) ? "grave" : "mild"}>{box.length === 1 && box[0] ? <OneWarning one={box[0]} /> : <Cause warnings={box} />}</li>
      ))}
      {boxes.length > shown.length && (
        <li class="more">
          <button class="link" onClick={() => show(true)}>
            and {boxes.length - shown.length} more
          </button>
        </li>
      )}
    </ul>
  );
}

const OneWarning = ({ one }: { one: Warning }) => (
  <>
    {one.task && (
      <>
        <b>
          <Text>{one.task}</Text>
        </b>
        {": "}
      </>
    )}
    <Text>{one.text}</Text>
  </>
);

/** The cause once, and what each task has of it. */
function Cause({ warnings }: { warnings: Warning[] }) {
  const [first] = warnings;
  const tasks = new Set(warnings.map((one) => one.task)).size;
  if (!first) return null;
  return (
    <>
      <b>{TITLES[first.kind]?.(`${tasks} task${tasks === 1 ? "" : "s"}`)}</b>
      {first.cause && (
        <>
          {": "}
          <Text>{first.cause}</Text>
        </>
      )}
      <details>
        <summary>
          {tasks === 1 ? "Details" : "Which tasks"}
        </summary>
        <ul class="plain">
          {warnings.map((one) => (
            <li>
              <b>
                <Text>{one.task}</Text>
              </b>
              {": "}
              <Text>{one.short}</Text>
            </li>
          ))}
        </ul>
      </details>
    </>
  );
}

export interface Column<T> {
  name: string;
  title?: string;
  value: (row: T) => string | number | null;
  cell?: (row: T) => ComponentChildren;
  class?: string;
  /** In place of the button that sorts by the column. */
  head?: ComponentChildren;
}

interface TableProps<T> {
  rows: T[];
  columns: Column<T>[];
  id?: string;
  rowClass?: (row: T) => string;
}

/** A table that is sorted by clicking a heading; with `most`, of more rows the others are shown when asked for. `note` stands below it. */
export function SortedTable<T>(props: TableProps<T> & { label: string; most?: number; note?: ComponentChildren }) {
  const [all, showAll] = useState(false);
  const [sort, set] = useState<Sort | null>(null);
  const rows = [...props.rows];
  const by = sort && props.columns[sort.column];
  if (sort && by) rows.sort((a, b) => compare(by.value(a), by.value(b), sort.down));
  // A button for two or three rows takes as much room as they do.
  const shown = all || props.most === undefined || rows.length <= props.most + 3 ? rows : rows.slice(0, props.most);
  const click = (column: number) => set(sort?.column === column ? { column, down: !sort.down } : { column, down: false });
  const foot = (
    <>
      {shown.length < rows.length && <button onClick={() => showAll(true)}>Show all {rows.length} rows</button>}
      {props.note && <span class="quiet">{props.note}</span>}
    </>
  );
  return (
    <Tabled label={props.label} foot={foot} whole={() => <Rows {...props} rows={rows} sort={sort} withValues />}>
      <Rows {...props} rows={shown} sort={sort} click={click} />
    </Tabled>
  );
}

interface Sort {
  column: number;
  down: boolean;
}

type RowsProps<T> = TableProps<T> & { sort: Sort | null; click?: (column: number) => void; withValues?: boolean };

/** The table itself; `withValues` cells keep the numbers behind their texts, for copies. */
function Rows<T>({ rows, columns, id, rowClass, sort, click, withValues = false }: RowsProps<T>) {
  const valueOf = (column: Column<T>, row: T) => {
    const value = withValues ? column.value(row) : null;
    return typeof value === "number" ? value : undefined;
  };
  return (
    <table id={id}>
      <thead>
        <tr>
          {columns.map((column, place) => (
            <th
              class={column.class}
              aria-sort={column.head ? undefined : sort?.column === place ? (sort.down ? "descending" : "ascending") : "none"}
            >
              {column.head ?? (
                <button class="heading" title={column.title && plain(column.title)} onClick={() => click?.(place)}>
                  <Text>{column.name}</Text>
                  <span aria-hidden="true">{sort?.column === place ? (sort.down ? " ↓" : " ↑") : ""}</span>
                </button>
              )}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr class={rowClass?.(row)}>
            {columns.map((column) => (
              <td class={column.class} data-value={valueOf(column, row)}>
                {column.cell ? column.cell(row) : <Text>{column.value(row)}</Text>}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function compare(a: string | number | null, b: string | number | null, down: boolean): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1; // what is absent comes last either way
  const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  return down ? -order : order;
}
