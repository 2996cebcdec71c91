// A box of text that scrolls where it is too high: keys can then reach it.
import { h, type ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export function Box({ kind = "pre", of = "text", children }: { kind?: "pre" | "div"; of?: string; children: ComponentChildren }) {
  const box = useRef<HTMLElement>(null);
  const [scrolls, set] = useState(false);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const watch = new ResizeObserver(() => set(element.scrollHeight > element.clientHeight || element.scrollWidth > element.clientWidth));
    watch.observe(element);
    return () => watch.disconnect();
  });
  return h(kind, { ref: box, class: of, tabIndex: scrolls ? 0 : undefined }, children);
}
