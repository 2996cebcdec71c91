// The four benchmarks' own breakdowns, as their reports state them in the results document.
import type { JsonObject } from "./types";

export function Benchmarks({ document }: { document: JsonObject }) {
  void document;
  return null;
}
