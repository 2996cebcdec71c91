// Long lists: only the rows in sight are in the page.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import { useKeys } from "./keys";
import { go } from "./route";

interface ListProps {
  count: number;
  /** Pixels of a row, and the width of a tile where several stand beside each other. */
  height: number;
  tile?: number;
  label: string;
  heading?: ComponentChildren;
  item: (place: number, selected: boolean) => ComponentChildren;
  address: (place: number) => string;
  keys?: Record<string, () => void>;
}

export function VirtualList({ count, height, tile, label, heading, item, address, keys }: ListProps) {
  const box = useRef<HTMLDivElement>(null);
  const view = useView(box);
  const [selected, select] = useState(0);
  const now = useRef(0); // keys come faster than the page is drawn
  const across = tile ? Math.max(1, Math.floor(view.width / tile)) : 1;
  const lines = Math.ceil(count / across);
  const move = (by: number) => () => {
    const next = Math.max(0, Math.min(count - 1, now.current + by));
    now.current = next;
    select(next);
    const top = Math.floor(next / across) * height;
    const element = box.current;
    if (element && (top < element.scrollTop || top + height > element.scrollTop + element.clientHeight - 40))
      element.scrollTop = Math.max(0, top - element.clientHeight / 2);
  };
  const open = () => {
    if (now.current < count) go(address(now.current));
  };
  useKeys({ j: move(1), k: move(-1), ArrowDown: move(across), ArrowUp: move(-across), Enter: open, ...keys });
  const first = Math.max(0, Math.floor(view.top / height) - 4) * across;
  const last = Math.min(count, (Math.ceil((view.top + view.height) / height) + 4) * across);
  const places = Array.from({ length: Math.max(0, last - first) }, (_, at) => first + at);
  return (
    <div class={`list ${tile ? "tiles" : ""}`} ref={box} tabIndex={0} role="region" aria-label={label}>
      {heading}
      <div class="space" style={{ height: `${lines * height}px` }}>
        <div class="window" style={{ transform: `translateY(${(first / across) * height}px)` }}>
          {places.map((place) => item(place, place === selected))}
        </div>
      </div>
    </div>
  );
}

function useView(box: { current: HTMLDivElement | null }): { top: number; height: number; width: number } {
  const [view, set] = useState({ top: 0, height: 600, width: 1000 });
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const look = () => set({ top: element.scrollTop, height: element.clientHeight, width: element.clientWidth });
    look();
    const watcher = new ResizeObserver(look);
    watcher.observe(element);
    element.addEventListener("scroll", look, { passive: true });
    return () => {
      watcher.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, []);
  return view;
}
