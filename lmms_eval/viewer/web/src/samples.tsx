// The list of samples: only the rows in sight are in the page and only their pieces are loaded, so that 100,000 stay smooth.
import { useCallback } from "preact/hooks";

import { columnsOf, Dot, Thumbnail, type ListColumn } from "./cells";
import { Waiting } from "./common";
import { Filters } from "./filters";
import { rowAddress, useColumns, useListed, type Listed } from "./listed";
import { address, ALL, replace, type Route } from "./route";
import { Selection } from "./selection";
import { Headline, type Table } from "./table";
import { count, Text } from "./text";
import type { RunEntry } from "./types";
import { VirtualList } from "./virtual";

const ROW = 40;
const TILE = 168;

export type Change = (changes: Record<string, string | null>) => void;

export function SamplesPage({ run, route }: { run: RunEntry; route: Route }) {
  const task = route.task ?? ALL;
  const { listed, error } = useListed(run, task, route.params);
  const known = task === ALL || run.tasks.some((one) => one.name === task);
  return (
    <main class="wide">
      <h1 class="title">
        <Text>{task === ALL ? "All tasks" : task}</Text>
      </h1>
      <Selection run={run} />
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
      {rows.length === 0 && (!progress || progress.done >= table.count) && <p class="empty">No sample matches these filters.</p>}
      <Scroller name={address([route.run, route.task], params)} table={table} rows={rows} params={params} change={change} />
    </>
  );
}

interface ScrollerProps {
  name: string;
  table: Table;
  rows: number[];
  params: URLSearchParams;
  change: Change;
}

function Scroller({ name, table, rows, params, change }: ScrollerProps) {
  const grid = params.get("view") === "grid";
  const columns = columnsOf(table, params);
  const Line = grid ? Tile : Row;
  const item = (place: number, selected: boolean) => {
    const row = rows[place] ?? 0;
    return <Line key={row} table={table} row={row} params={params} columns={columns} selected={selected} />;
  };
  return (
    <VirtualList
      name={name}
      count={rows.length}
      height={grid ? TILE : ROW}
      tile={grid ? TILE : undefined}
      label="Samples"
      heading={!grid && <Heading columns={columns} params={params} change={change} />}
      address={(place) => rowAddress(table, rows[place] ?? 0, params)}
      keys={{ g: () => change({ view: grid ? null : "grid" }) }}
      item={item}
    />
  );
}

interface LineProps {
  table: Table;
  row: number;
  params: URLSearchParams;
  columns: ListColumn[];
  selected: boolean;
}

const template = (columns: ListColumn[]): string => columns.map((column) => column.width).join(" ");

function Row({ table, row, params, columns, selected }: LineProps) {
  const { error } = useColumns(table, ["id", ...columns.flatMap((column) => column.needs ?? [column.key])], [row]);
  return (
    <a class={`row ${selected ? "selected" : ""}`} href={rowAddress(table, row, params)} style={{ gridTemplateColumns: template(columns) }}>
      {error ? <Text>{error}</Text> : columns.map((column) => <span class={column.class}>{column.cell(row)}</span>)}
    </a>
  );
}

function Tile({ table, row, params, selected }: LineProps) {
  const headline = new Headline(table, params);
  const { error } = useColumns(table, ["id", "thumb", "masks", "answer", "status", ...headline.columns], [row]);
  const verdict = headline.verdict(row);
  return (
    <a class={`tile ${selected ? "selected" : ""}`} href={rowAddress(table, row, params)}>
      <Thumbnail table={table} row={row} />
      <span class="caption">
        <Dot verdict={verdict} />
        <span class="unseen">{verdict}</span>
        <Text>{error ?? (table.text("answer", row) || table.text("id", row))}</Text>
      </span>
    </a>
  );
}

function Heading({ columns, params, change }: { columns: ListColumn[]; params: URLSearchParams; change: Change }) {
  const by = params.get("sort");
  const down = params.get("down") !== null;
  const sort = (key: string) =>
    by !== key ? change({ sort: key, down: null }) : down ? change({ sort: null, down: null }) : change({ down: "1" });
  return (
    <div class="row head" style={{ gridTemplateColumns: template(columns) }}>
      {columns.map((column) => (
        <button class={`heading ${column.class ?? ""}`} title={column.title} onClick={() => column.key !== "thumb" && sort(column.key)}>
          {column.name}
          <span aria-hidden="true">{by === column.key ? (down ? " ↓" : " ↑") : ""}</span>
        </button>
      ))}
    </div>
  );
}
