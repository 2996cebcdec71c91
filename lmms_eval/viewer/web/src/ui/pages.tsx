// Pages of finished runs: made by the server where they are not there yet, then opened.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { Text } from "../text";
import { api, pagesAddress } from "./api";

const EVERY_MS = 500;

interface MakeProps {
  jobs: string[];
  /** Page within the report that is opened. */
  address?: string;
  disabled?: boolean;
  children: ComponentChildren;
}

export function MakePages({ jobs, address = "", disabled, children }: MakeProps) {
  const [state, set] = useState<{ busy?: boolean; error?: string }>({});
  const open = async () => {
    set({ busy: true });
    try {
      const name = await made(jobs);
      set({});
      location.assign(`${pagesAddress(name)}${address}`);
    } catch (error) {
      set({ error: (error as Error).message });
    }
  };
  return (
    <>
      <button class="accent" onClick={open} disabled={disabled || state.busy}>
        {state.busy ? "Making the pages …" : children}
      </button>
      {state.error && <span class="problem" role="alert"><Text>{state.error}</Text></span>}
    </>
  );
}

async function made(jobs: string[]): Promise<string> {
  for (;;) {
    const pages = await api.makePages(jobs);
    if (pages.state === "ready") return pages.name;
    if (pages.state === "failed") throw new Error(pages.error);
    await new Promise((done) => setTimeout(done, EVERY_MS));
  }
}
