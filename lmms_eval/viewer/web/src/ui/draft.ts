// The evaluation that is being put together: of this tab, and still there when the page is loaded again.
import { useSyncExternalStore } from "./store";
import type { Request, Value } from "./api";

const KEY = "lmms-eval-draft";
const EMPTY: Request = { tasks: [] };

function read(): Request {
  try {
    return { ...EMPTY, ...(JSON.parse(sessionStorage.getItem(KEY) ?? "{}") as Request) };
  } catch {
    return EMPTY;
  }
}

let now = read();
const listeners = new Set<() => void>();

export const draft = (): Request => now;

export function setDraft(next: Request): void {
  now = { ...EMPTY, ...next };
  try {
    sessionStorage.setItem(KEY, JSON.stringify(now));
  } catch {
    // it then lasts until the page is closed
  }
  for (const told of listeners) told();
}

/** Sets one option; `undefined` leaves it to its default. */
export function setOption(name: string, value: Value | undefined): void {
  const { [name]: _, ...rest } = now;
  setDraft((value === undefined ? rest : { ...rest, [name]: value }) as Request);
}

export function setArgument(name: string, value: Value | undefined): void {
  const { [name]: _, ...rest } = now.model_args ?? {};
  setOption("model_args", value === undefined ? rest : { ...rest, [name]: value });
}

export const useDraft = (): Request =>
  useSyncExternalStore((told) => {
    listeners.add(told);
    return () => listeners.delete(told);
  }, draft);
