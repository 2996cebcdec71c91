// Loads pieces of data. From disk no file can be fetched, but scripts can be loaded: each piece is one call of
// `lmmsChunk`. Only scripts that bear the page's nonce run, and only addresses of pieces become scripts. A view, which a
// server gives, fetches them instead, and says when one has changed.

interface Policy {
  createScriptURL(url: string): string;
}

const SCRIPT = document.currentScript as HTMLScriptElement | null;
const NONCE = SCRIPT?.nonce ?? "";
export const LIVE = SCRIPT?.dataset.live !== undefined;
const ADDRESS = /^data\/[a-z0-9-]{1,80}\.js$/;
const KEPT = 32; // pieces of samples that stay in memory
const SMALL = /^(runs|run-|index-)/; // all of these do

const rules: Policy = {
  createScriptURL(url) {
    if (!ADDRESS.test(url)) throw new TypeError(`no piece of the report: ${url}`);
    return url;
  },
};
const factory = (window as { trustedTypes?: { createPolicy(name: string, rules: Policy): Policy } }).trustedTypes;
/** Made for the first piece: the server's page, which loads none, may make no policy. */
let policy: Policy | undefined;

const arrived = new Map<string, string>();
(window as unknown as { lmmsChunk: (name: string, text: string) => void }).lmmsChunk = (name, text) => {
  arrived.set(name, text);
};

const kept = new Map<string, Promise<unknown>>();

export function load<T>(name: string): Promise<T> {
  const known = kept.get(name);
  if (known) {
    kept.delete(name);
    kept.set(name, known); // the newest stay longest
    return known as Promise<T>;
  }
  const found = read(name);
  kept.set(name, found);
  found.catch(() => kept.delete(name));
  forgetOldest();
  return found as Promise<T>;
}

function forgetOldest(): void {
  const pieces = [...kept.keys()].filter((name) => !SMALL.test(name));
  for (const name of pieces.slice(0, Math.max(0, pieces.length - KEPT))) kept.delete(name);
}

type Listener = (hasChanged: (name: string) => boolean) => void;
const listeners = new Set<Listener>();

/** Tells of pieces that have changed; returns what ends it. */
export function onChange(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** These pieces have changed: whoever shows them loads them again. `*` stands for all. */
export function changed(names: string[]): void {
  const known = new Set(names);
  const hasChanged = (name: string) => known.has("*") || known.has(name);
  for (const name of [...kept.keys()]) if (hasChanged(name)) kept.delete(name);
  for (const listener of listeners) listener(hasChanged);
}

async function fetched(name: string): Promise<unknown> {
  const response = await fetch(`data/${name}.json`).catch(() => {
    throw new Error("the view has ended before this was loaded");
  });
  if (!response.ok) throw new Error((await response.text()).trim() || `data/${name}.json: ${response.status}`);
  return response.json();
}

async function read(name: string): Promise<unknown> {
  if (LIVE) return fetched(name);
  const inside = document.getElementById(`chunk-${name}`);
  if (inside) return JSON.parse(inside.textContent ?? "null");
  const script = document.createElement("script");
  script.nonce = NONCE;
  policy ??= factory ? factory.createPolicy("lmms-chunks", rules) : rules;
  script.src = policy.createScriptURL(`data/${name}.js`);
  await new Promise<void>((done, fail) => {
    script.onload = () => done();
    script.onerror = () => fail(new Error(`data/${name}.js is missing: was the whole folder copied?`));
    document.head.append(script);
  });
  script.remove();
  const text = arrived.get(name);
  arrived.delete(name);
  if (text === undefined) throw new Error(`data/${name}.js is damaged`);
  return JSON.parse(text);
}
