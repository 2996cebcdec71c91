// The scores that a person has given so far, as the browser keeps them, and as a table.
import { useEffect, useRef, useState } from "preact/hooks";

import type { Labels } from "./types";

export interface Progress {
  /** Scores by the number of the answer. */
  scores: Record<number, number>;
  /** Answers whose judge's score has been shown. */
  seen: number[];
  at: number;
}

const NONE: Progress = { scores: {}, seen: [], at: 0 };

/** Makes the next progress from the present one: keys may be pressed faster than the page is drawn. */
export type Change = (make: (now: Progress) => Partial<Progress>) => void;

/** The progress of a page, kept under a key of its content. Another tab's changes are taken over. */
export function useProgress(key: string, of: number): { progress: Progress; change: Change; isKept: boolean } {
  const name = `lmms-eval-labels-${key}`;
  const [progress, show] = useState(() => read(name, of) ?? NONE);
  const [isKept, setKept] = useState(() => write(name, progress));
  const now = useRef(progress);
  const set = (next: Progress) => {
    now.current = next;
    show(next);
  };
  useEffect(() => {
    const changed = (event: StorageEvent) => {
      const found = event.key === name ? read(name, of) : undefined;
      if (found) set({ ...found, at: now.current.at });
    };
    window.addEventListener("storage", changed);
    return () => window.removeEventListener("storage", changed);
  }, [name]);
  useEffect(() => {
    if (isKept || !Object.keys(progress.scores).length) return;
    const leaving = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", leaving);
    return () => window.removeEventListener("beforeunload", leaving);
  }, [isKept, progress]);
  const change: Change = (make) => {
    set({ ...now.current, ...make(now.current) });
    setKept(write(name, now.current));
  };
  return { progress, change, isKept };
}

function write(name: string, progress: Progress): boolean {
  try {
    localStorage.setItem(name, JSON.stringify(progress));
    return true;
  } catch {
    return false; // some browsers keep nothing for pages from disk
  }
}

/** What was kept, as far as it is of this form. */
function read(name: string, of: number): Progress | undefined {
  try {
    const found = JSON.parse(localStorage.getItem(name) ?? "null") as Partial<Progress> | null;
    if (!found) return undefined;
    const isPlace = (at: unknown): at is number => Number.isInteger(at) && (at as number) >= 0 && (at as number) < of;
    const scores = Object.entries(found.scores ?? {}).filter(([at, score]) => isPlace(Number(at)) && Number.isFinite(score));
    return { scores: Object.fromEntries(scores), seen: (found.seen ?? []).filter(isPlace), at: isPlace(found.at) ? found.at : 0 };
  } catch {
    return undefined;
  }
}

/** The table of the plan with the scores, as RFC 4180 has it. */
export function csv({ columns, rows }: Labels, { scores }: Progress): string {
  const place = columns.indexOf("score");
  const filled = rows.map((row, at) => row.map((cell, column) => (column === place ? String(scores[at] ?? "") : cell)));
  return [columns, ...filled].map((row) => `${row.map(quoted).join(",")}\n`).join("");
}

const quoted = (cell: string): string => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
