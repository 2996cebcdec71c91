// Masks that a text or a value holds as lengths of runs: shown by their size, since the picture shows the mask.
import { isObject } from "./messages";
import { Pre } from "./pre";
import { count } from "./text";
import type { Json } from "./types";

const LONGEST = 1_000_000;

interface Mask {
  width: number;
  height: number;
  runs: number | null;
}

/** The mask that a value is, if it is one: `size` (height, width) and `counts`, as a list or packed into a text. */
export function maskOf(value: Json): Mask | null {
  if (!isObject(value) || !Array.isArray(value.size) || value.size.length !== 2 || value.counts === undefined) return null;
  const [height, width] = value.size;
  if (typeof height !== "number" || typeof width !== "number") return null;
  return { width, height, runs: Array.isArray(value.counts) ? value.counts.length : null };
}

function collect(value: Json, found: Mask[], depth = 0): Mask[] {
  const mask = maskOf(value);
  if (mask) found.push(mask);
  else if (depth < 4 && value !== null && typeof value === "object") Object.values(value).forEach((item) => collect(item as Json, found, depth + 1));
  return found;
}

/** The masks of a text that is JSON with masks in it; null for any other text. */
export function masksIn(text: string): Mask[] | null {
  if (text.length > LONGEST || !text.includes('"counts"')) return null;
  try {
    const found = collect(JSON.parse(text) as Json, []);
    return found.length ? found : null;
  } catch {
    return null;
  }
}

export const MaskLine = ({ mask: { width, height, runs } }: { mask: Mask }) => (
  <span>
    Mask of {width} × {height} pixels{runs !== null && <span class="quiet">, {count(runs)} runs</span>}
  </span>
);

/** A text of masks: their sizes, and the text itself when it is asked for. */
export function MaskText({ text }: { text: string }) {
  const masks = masksIn(text) ?? [];
  return (
    <>
      {masks.slice(0, 8).map((mask) => (
        <p class="mask-line">
          <MaskLine mask={mask} />
        </p>
      ))}
      {masks.length > 8 && <p class="quiet">and {masks.length - 8} more</p>}
      <details>
        <summary class="quiet">Run lengths</summary>
        <Pre exact>{text}</Pre>
      </details>
    </>
  );
}
