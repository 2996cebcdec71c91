// The connection of a view to its server: what has changed is asked for, and an end is said and survived.
import { useEffect, useState } from "preact/hooks";

import { changed } from "./chunks";

type Link = "live" | "ended" | "locked";

interface Changes {
  view: string;
  version: number;
  names: string[];
  ending: boolean;
}

const LEAST_MS = 500;
const PATIENCE_S = [3, 6, 12, 24, 60]; // a browser writes a line for each attempt that fails
let link: Link = "live";
let wake = () => {};
const shown = new Set<(link: Link) => void>();

function become(next: Link): void {
  if (next === link) return;
  link = next;
  for (const show of shown) show(link);
}

/** Waits, or until someone wants to know now. */
const rest = (ms: number): Promise<void> =>
  new Promise((done) => {
    const timer = setTimeout(done, ms);
    wake = () => {
      clearTimeout(timer);
      done();
    };
  });

async function ask(view: string, version: number): Promise<Changes | "locked" | "gone"> {
  try {
    const response = await fetch(`changes?view=${encodeURIComponent(view)}&since=${version}`);
    if (response.ok) return (await response.json()) as Changes;
    return response.status === 403 ? "locked" : "gone";
  } catch {
    return "gone";
  }
}

async function run(): Promise<never> {
  let [view, version, failed] = ["", 0, 0];
  for (;;) {
    const found = await ask(view, version);
    if (typeof found === "object") {
      if (found.names.length) changed(found.names);
      ({ view, version } = found);
      failed = 0;
      become(found.ending ? "ended" : "live");
    } else {
      become(found === "locked" ? "locked" : "ended");
      failed += 1;
    }
    const patience = PATIENCE_S[Math.min(failed, PATIENCE_S.length) - 1] ?? PATIENCE_S[0] ?? 0;
    await rest(link === "live" ? LEAST_MS : 1000 * patience);
  }
}

/** Begins to follow the server; the token, which a cookie keeps by now, leaves the address. */
export function follow(): void {
  if (location.search) history.replaceState(null, "", location.pathname + location.hash);
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && link !== "live" && wake());
  void run();
}

export function LinkBanner() {
  const [now, show] = useState(link);
  useEffect(() => {
    shown.add(show);
    show(link);
    return () => void shown.delete(show);
  }, []);
  if (now === "live") return null;
  return (
    <div class="banner" role="alert">
      {now === "ended"
        ? "The view has ended; what was loaded stays. "
        : "The view runs under a new address: open the one that lmms-eval view has printed; what was loaded stays. "}
      <button onClick={() => wake()}>Try again</button>
    </div>
  );
}
