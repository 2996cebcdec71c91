// The four benchmarks' own breakdowns, as their reports state them in the results document.
import type { ComponentType } from "preact";

import { object } from "./benchmark_parts";
import { GeneralBench } from "./general_bench";
import { MegaBench } from "./megabench";
import { MileBench } from "./milebench";
import { Mmie } from "./mmie";
import type { JsonObject } from "./types";

const SECTIONS: [string, ComponentType<{ set: string; part: JsonObject }>][] = [
  ["megabench_breakdown", MegaBench],
  ["milebench_report", MileBench],
  ["mmie_report", Mmie],
  ["general_bench_report", GeneralBench],
];

export function Benchmarks({ document }: { document: JsonObject }) {
  return (
    <>
      {SECTIONS.flatMap(([key, Part]) =>
        Object.entries(object(document[key])).map(([set, part]) => <Part key={`${key} ${set}`} set={set} part={object(part)} />),
      )}
    </>
  );
}

export const hasBenchmarks = (document: JsonObject): boolean => SECTIONS.some(([key]) => Object.keys(object(document[key])).length > 0);
