// Where lists stood when they were left, by their addresses: who comes back from a sample finds its row in sight.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

interface Place {
  /** The first item in sight, and the pixels of it that are not. */
  first: number;
  cut: number;
  selected: number;
}

const kept = new Map<string, Place>();

const placeIn = (list: string): Place => kept.get(list) ?? { first: 0, cut: 0, selected: 0 };

export const keepPlace = (list: string, changes: Partial<Place>): void => {
  kept.set(list, { ...placeIn(list), ...changes });
};

interface Shown {
  top: number;
  measured: boolean;
  /** Items beside each other, pixels of a row, and all items. */
  across: number;
  row: number;
  count: number;
}

/** The selected item of a list, which begins where it was left. */
export function usePlace(list: string, box: { current: HTMLElement | null }, { top, measured, across, row, count }: Shown) {
  const [selected, select] = useState(() => Math.max(0, Math.min(count - 1, placeIn(list).selected)));
  const now = useRef(selected); // keys come faster than the page is drawn
  useLayoutEffect(() => {
    if (!box.current || !measured) return;
    const { first, cut } = placeIn(list);
    box.current.scrollTop = Math.floor(first / across) * row + cut;
    reveal(box.current, Math.floor(selected / across) * row, row);
  }, [measured]);
  useEffect(() => {
    if (measured) keepPlace(list, { first: Math.floor(top / row) * across, cut: top % row, selected });
  }, [list, top, measured, across, row, selected]);
  const choose = (item: number) => {
    now.current = item;
    select(item);
  };
  return { selected, now, choose };
}

/** Scrolls a row into sight that is not. */
export function reveal(element: HTMLElement | null, top: number, height: number): void {
  if (element && (top < element.scrollTop || top + height > element.scrollTop + element.clientHeight - 40))
    element.scrollTop = Math.max(0, top - element.clientHeight / 2);
}
