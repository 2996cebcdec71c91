// One number by the values of a metadata column: the rows of `lmms-eval compare --by COLUMN`.
import { labelOf } from "./amounts";
import { load } from "./chunks";
import { Section, SortedTable, useMade, Waiting, type Column } from "./common";
import type { Change } from "./compare";
import { numberColumns, type Shown } from "./differences";
import { entryOf, keyOf, mirroredRow, prefixed, type Difference, type Pair, type PartColumn, type Summary } from "./pairs";
import { count, plain, Text } from "./text";

const FEW = "few documents";

interface PartsProps {
  summary: Summary;
  pairs: Pair[];
  row: Difference;
  params: URLSearchParams;
  change: Change;
}

export function Parts({ summary, pairs, row, params, change }: PartsProps) {
  if (!summary.by.length) return null;
  const name = params.get("by") ?? "";
  const chosen = summary.by.findIndex(({ column }) => column === name);
  return (
    <Section title={`Breakdown of ${plain(labelOf(row))}`} id="parts">
      <div class="field">
        <label for="by">Group by</label>
        <select id="by" value={chosen < 0 ? "" : name} onChange={(event) => change({ by: event.currentTarget.value })}>
          <option value="">none</option>
          {summary.by.map(({ column }) => (
            <option value={column}>{plain(column)}</option>
          ))}
        </select>
      </div>
      {name && chosen < 0 && <Waiting error={`no column ${name} groups the documents of these runs`} />}
      {chosen >= 0 && <Divided summary={summary} pairs={pairs} row={row} place={chosen} />}
    </Section>
  );
}

function Divided({ summary, pairs, row, place }: { summary: Summary; pairs: Pair[]; row: Difference; place: number }) {
  const { column, rows, reason } = summary.by[place] as PartColumn;
  const compared = pairs.filter((pair) => !pair.reason);
  const { content, error } = useMade(JSON.stringify([prefixed(summary, ""), place, compared.map(({ first, second }) => [first.number, second.number])]), async () =>
    reason ? [] : (await Promise.all(compared.map((pair) => readParts(summary, pair, place)))).flat(),
  );
  if (reason) return <Waiting error={reason} />;
  if (!content) return <Waiting error={error} />;
  const shown = content.filter((one) => one.row.name === row.name && keyOf(one.row) === keyOf(row)).sort((a, b) => order(content, a) - order(content, b));
  if (!shown.length) return <p class="empty">The documents of <Text>{row.name}</Text> have no column <Text>{column}</Text>.</p>;
  const several = compared.length > 1;
  return (
    <>
      <p class="quiet">p is corrected over all {count(rows)} rows of this column in the report: all numbers and pairs. * fewer than 30 documents.</p>
      <div class="forest">
        <SortedTable rows={shown} columns={columns(shown, column, several)} label={`By ${column}`} />
      </div>
    </>
  );
}

async function readParts(summary: Summary, pair: Pair, place: number): Promise<Shown[]> {
  const entry = entryOf(summary, pair.first, pair.second);
  if (!entry) return [];
  const rows = await load<Difference[]>(prefixed(summary, `parts-${entry.first}-${entry.second}-${place}`));
  return rows.map((row) => ({ pair, row: pair.mirrored ? mirroredRow(row) : row }));
}

/** Of several pairs those of one value stand together. */
const order = (all: Shown[], one: Shown): number => all.findIndex(({ row }) => row.cell === one.row.cell);

const columns = (rows: Shown[], name: string, several: boolean): Column<Shown>[] => [
  { name, value: ({ row }) => row.cell, cell: ({ row }) => <Text>{row.cell + (row.notes.some((note) => note.startsWith(FEW)) ? "*" : "")}</Text> },
  ...numberColumns(rows, several, "all rows of this column"),
];
