// The frame of every table: it scrolls by itself, and below it stand its legend and the buttons that copy it.
import { render, type ComponentChildren, type VNode } from "preact";
import { useContext, useRef, useState } from "preact/hooks";

import { copied } from "./clipboard";
import { csv, latex, markdown, readGrid, type Grid } from "./grid";
import { Compared } from "./name";
import { plain } from "./text";

const FORMS: [string, (grid: Grid) => string][] = [
  ["LaTeX", latex],
  ["Markdown", markdown],
  ["CSV", csv],
];

interface TabledProps {
  /** Names the table to those who cannot see it. */
  label: string;
  /** The table, and what scrolls with it. */
  children: ComponentChildren;
  /** Below the table, before the buttons: a legend, or a button for more rows. */
  foot?: ComponentChildren;
  /** The table with all its rows, if `children` show only some of them. */
  whole?: () => VNode;
}

export function Tabled({ label, children, foot, whole }: TabledProps) {
  const box = useRef<HTMLDivElement>(null);
  const names = useContext(Compared);
  const grid = (): Grid | null => {
    if (whole) return wholeGrid(<Compared.Provider value={names}>{whole()}</Compared.Provider>);
    const table = box.current?.querySelector("table");
    return table ? readGrid(table) : null;
  };
  return (
    <div class="tabled">
      <div class="scroll" role="region" aria-label={plain(label)} tabIndex={0} ref={box}>
        {children}
      </div>
      <div class="table-foot">
        {foot}
        <Copies label={label} grid={grid} />
      </div>
    </div>
  );
}

/** Reads a table that the page does not show. */
function wholeGrid(table: VNode): Grid | null {
  const place = document.createElement("div");
  render(table, place);
  const element = place.querySelector("table");
  const grid = element && readGrid(element);
  render(null, place);
  return grid;
}

function Copies({ label, grid }: { label: string; grid: () => Grid | null }) {
  const [done, set] = useState<[string, boolean]>();
  const copy = async (name: string, form: (grid: Grid) => string) => {
    const found = grid();
    if (!found) return;
    set([name, await copied(form(found))]);
    setTimeout(() => set(undefined), 2000);
  };
  return (
    <span class="copies" role="group" aria-label={`Copy ${plain(label)} as`}>
      <span aria-hidden="true">Copy as </span>
      {FORMS.map(([name, form]) => (
        <button class="link" onClick={() => void copy(name, form)}>
          {name}
        </button>
      ))}
      <span aria-live="polite">{done && (done[1] ? `${done[0]} copied` : "The browser refuses to copy")}</span>
    </span>
  );
}
