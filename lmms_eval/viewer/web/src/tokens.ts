// Tokens of requests in words.
import { isObject } from "./messages";
import { count } from "./text";
import type { Json, JsonObject } from "./types";

/** The sums over requests; empty where none of them tells. */
export function tokensTold(counts: Json | undefined): string {
  const known = Array.isArray(counts) ? counts.filter(isObject) : [];
  const sum = (key: string) => known.reduce((all, one) => all + (Number(one[key]) || 0), 0);
  const reasoning = sum("reasoning_tokens") ? `, ${count(sum("reasoning_tokens"))} of them reasoning` : "";
  return known.length ? `${count(sum("input_tokens"))} tokens in, ${count(sum("output_tokens"))} out${reasoning}` : "";
}

/** Those of all requests of a sample: of repeats each has its own. */
export const countsOf = (line: JsonObject): Json[] => {
  const repeats = Array.isArray(line.repeats) ? line.repeats.filter(isObject) : [line];
  return repeats.flatMap((one) => (Array.isArray(one.token_counts) ? one.token_counts : []));
};
