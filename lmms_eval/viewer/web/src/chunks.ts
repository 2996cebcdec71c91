// Loads pieces of data. From disk no file can be fetched, but scripts can be loaded: each piece is one call of
// `lmmsChunk`. Only scripts that bear the page's nonce run, and only addresses of pieces become scripts.

interface Policy {
  createScriptURL(url: string): string;
}

const NONCE = (document.currentScript as HTMLScriptElement | null)?.nonce ?? "";
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
const policy = factory ? factory.createPolicy("lmms-chunks", rules) : rules;

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

async function read(name: string): Promise<unknown> {
  const inside = document.getElementById(`chunk-${name}`);
  if (inside) return JSON.parse(inside.textContent ?? "null");
  const script = document.createElement("script");
  script.nonce = NONCE;
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
