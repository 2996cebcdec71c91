// The address holds what is shown: `#/RUN`, `#/RUN?page=audit`, `#/RUN/TASK?filters` (TASK `*`: all),
// `#/RUN/TASK/DOC?filters`, and pages over several runs, `#/:PAGE?...`. Names of runs are written with their colons encoded, so none can be such a page.
import { useEffect, useState } from "preact/hooks";

import type { Verdict } from "./types";

export interface Route {
  page?: string;
  run?: string;
  task?: string;
  doc?: string;
  params: URLSearchParams;
}

export const ALL = "*";

export function parse(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const params = new URLSearchParams(query);
  if (path.startsWith(":")) return { page: path.slice(1), params };
  const [run, task, doc] = path.split("/").map(decoded);
  return { run: run || undefined, task: task || undefined, doc: doc || undefined, params };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function address(parts: (string | undefined)[], params?: URLSearchParams): string {
  const path = parts.filter((part) => part !== undefined).map((part) => encodeURIComponent(part as string)).join("/");
  const query = params?.toString();
  return `#/${path}${query ? `?${query}` : ""}`;
}

/** The list of the samples with one verdict: `verdictAddress(run, task, "wrong")` is "wrong only". Task `ALL`: of all tasks. */
export const verdictAddress = (run: string, task: string, verdict: Verdict): string =>
  address([run, task], new URLSearchParams({ verdict }));

export const pageAddress = (page: string, params: URLSearchParams): string => {
  const query = params.toString();
  return `#/:${page}${query ? `?${query}` : ""}`;
};

export const go = (hash: string): void => {
  location.hash = hash;
};

/** Changes the address without a step in the history: while a filter is typed. */
export function replace(hash: string): void {
  history.replaceState(null, "", hash);
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}

export function useRoute(): Route {
  const [hash, set] = useState(location.hash);
  useEffect(() => {
    const changed = () => set(location.hash);
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return parse(hash);
}
