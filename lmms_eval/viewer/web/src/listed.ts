// The samples that an address asks for, in its order, with as much loaded as that takes.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { useChanges, useMade, type Loaded } from "./common";
import { Codes, natural } from "./columns";
import { address, ALL } from "./route";
import { search, type Progress } from "./search";
import { chosen, neededColumns, readTable, type Table } from "./table";
import type { RunEntry } from "./types";

export interface Listed {
  table: Table;
  rows: number[];
  progress: Progress | null;
}

/** Whether columns are there, for these rows or for all; loads what is missing. */
export function useColumns(table: Table | undefined, keys: string[], rows?: readonly number[]): { ready: boolean; error?: string } {
  const columns = keys.flatMap((key) => table?.columns.get(key) ?? []).filter((column) => !column.has(rows));
  const [error, fail] = useState<string>();
  const [, again] = useState(0);
  const wanted = columns.map((column) => column.key).join("\n");
  useEffect(() => {
    let current = true;
    if (columns.length)
      Promise.all(columns.map((column) => column.load(rows))).then(
        () => current && again((times) => times + 1),
        (reason: Error) => current && fail(reason.message),
      );
    return () => {
      current = false;
    };
  }, [table, wanted, rows?.join()]);
  return { ready: table !== undefined && !columns.length, error };
}

/** The values of columns that have few, in order; loaded when they are wanted. */
export function useValues(table: Table | undefined, wanted: boolean): (key: string) => string[] {
  const [, again] = useState(0);
  useEffect(() => {
    if (!wanted || !table) return;
    let current = true;
    const codes = [...table.columns.values()].filter((column) => column instanceof Codes);
    void Promise.allSettled(codes.map((column) => column.loadValues())).then(() => current && again((times) => times + 1));
    return () => {
      current = false;
    };
  }, [table, wanted]);
  return (key) => {
    const column = table?.columns.get(key);
    return column instanceof Codes && column.hasValues ? [...column.values].sort(natural) : [];
  };
}

/** The samples of a task, or of all; those of a run that goes on grow, but not while they are searched. */
function useTable(run: RunEntry, taskName: string, isSearched: boolean): Loaded<Table> {
  const tasks = taskName === ALL ? run.tasks : run.tasks.filter((task) => task.name === taskName);
  const key = [run.number, taskName, ...tasks.map((task) => `${task.key} ${task.form ?? ""}`)].join("/");
  const changes = useChanges(tasks.map((task) => `index-${task.key}`));
  const shown = useRef(changes);
  if (!isSearched) shown.current = changes;
  const last = useRef<Table>();
  return useMade(
    key,
    async () => {
      const table = await readTable(run, tasks, key);
      if (last.current?.key === key) await table.loadAsIn(last.current);
      return (last.current = table);
    },
    shown.current,
  );
}

/** The row of a sample of the table's only task; -1 where there is none. */
export const useRow = (table: Table | undefined, id: string): Loaded<number> =>
  useMade(`${table?.key ?? ""}//${id}`, () => (table ? table.row(id) : new Promise<number>(() => {})), table?.count);

function useSearch(table: Table | undefined, query: string): Loaded<Progress> {
  const [found, set] = useState<Loaded<Progress>>({});
  useEffect(() => {
    set({});
    if (!table || !query) return;
    let current = true;
    void (async () => {
      await new Promise((done) => setTimeout(done, 200)); // until the typing pauses
      try {
        for await (const content of search(table, query)) {
          if (!current) return;
          set({ content });
        }
      } catch (error) {
        if (current) set({ error: (error as Error).message });
      }
    })();
    return () => {
      current = false;
    };
  }, [table, query]);
  return found;
}

export function useListed(run: RunEntry, taskName: string, params: URLSearchParams): { listed?: Listed; error?: string } {
  const query = params.get("q") ?? "";
  const { content: table, error } = useTable(run, taskName, query !== "");
  const { content: progress, error: unread } = useSearch(table, query);
  const shown = params.toString();
  const needed = useMemo(() => (table ? neededColumns(table, params) : []), [table, shown]);
  const columns = useColumns(table, needed);
  const { ready } = columns;
  const rows = useMemo(
    () => (table && ready ? chosen(table, params, query ? (progress?.matches ?? new Set()) : null) : []),
    [table, shown, ready, progress],
  );
  const failure = error ?? unread ?? columns.error;
  if (failure) return { error: failure };
  return table && ready ? { listed: { table, rows, progress: query ? (progress ?? { done: 0, matches: new Set() }) : null } } : {};
}

/** The address of a sample; its id has to be loaded. */
export const rowAddress = (table: Table, row: number, params: URLSearchParams): string =>
  address([table.run.name, table.tasks[table.task(row)]?.name, table.text("id", row)], params);
