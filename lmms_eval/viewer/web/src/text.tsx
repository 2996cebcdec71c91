// Texts of models and data sets: only ever text nodes, with characters that hide or reorder others made visible.
import type { ComponentChildren } from "preact";

// eslint-disable-next-line no-control-regex
const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

export const code = (character: string): string =>
  `U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

/** The text in one piece, for places that take no elements (options, titles, charts). */
export const plain = (text: unknown): string => String(text ?? "").replace(HIDDEN, (one) => `⟨${code(one)}⟩`);

export function Text({ children }: { children: unknown }) {
  const text = String(children ?? "");
  if (text.search(HIDDEN) < 0) return <bdi>{text}</bdi>;
  const pieces: ComponentChildren[] = [];
  let end = 0;
  for (const found of text.matchAll(HIDDEN)) {
    if (found.index > end) pieces.push(text.slice(end, found.index));
    pieces.push(<span class="hidden-character">{code(found[0])}</span>);
    end = found.index + 1;
  }
  if (end < text.length) pieces.push(text.slice(end));
  return <bdi>{pieces}</bdi>;
}

export function number(value: number | null | undefined, digits = 4): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return String(value);
  if (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-3) return value.toPrecision(3);
  return Math.abs(value) >= 10 ? value.toFixed(Math.max(0, digits - 2)) : value.toFixed(digits);
}

/** A single number without the zeros that align it with others. */
export const alone = (value: number, digits = 6): string => number(value, digits).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");

export const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

export const count = (value: number | null | undefined): string =>
  value === null || value === undefined ? "–" : value.toLocaleString("en-US");

export function seconds(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 90) return `${value.toFixed(1)} s`;
  const minutes = Math.round(value / 60);
  return minutes < 90 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** A text as it is, a list of one by its entry, anything else as JSON. */
export function told(value: unknown): string {
  while (Array.isArray(value) && value.length === 1) value = value[0];
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
