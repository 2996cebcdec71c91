// Long lists: only the rows in sight are in the page.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import { useKeys } from "./keys";
import { reveal, usePlace } from "./places";
import { go } from "./route";

interface ListProps {
  /** Its address, by which it is found again where it was left. */
  name: string;
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

export function VirtualList({ name, count, height, tile, label, heading, item, address, keys }: ListProps) {
  const box = useRef<HTMLDivElement>(null);
  const view = useView(box);
  const across = tile ? Math.max(1, Math.floor(view.width / tile)) : 1;
  const lines = Math.ceil(count / across);
  const { selected, now, choose } = usePlace(name, box, { ...view, across, row: height, count });
  const move = (by: number) => () => {
    choose(Math.max(0, Math.min(count - 1, now.current + by)));
    reveal(box.current, Math.floor(now.current / across) * height, height);
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
        <div
          class="window"
          onClick={(event) => {
            const at = [...event.currentTarget.children].findIndex((child) => child.contains(event.target as Node));
            if (at >= 0) choose(first + at);
          }}
          style={{ transform: `translateY(${(first / across) * height}px)` }}
        >
          {places.map((place) => item(place, place === selected))}
        </div>
      </div>
    </div>
  );
}

interface View {
  top: number;
  height: number;
  width: number;
  measured: boolean;
}

function useView(box: { current: HTMLDivElement | null }): View {
  const [view, set] = useState<View>({ top: 0, height: 600, width: 1000, measured: false });
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const look = () => set({ top: element.scrollTop, height: element.clientHeight, width: element.clientWidth, measured: true });
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
