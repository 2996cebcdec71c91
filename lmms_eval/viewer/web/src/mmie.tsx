// MMIE: categories, fields and subfields, and how far the judge can be relied on.
import { useState } from "preact/hooks";

import { Choose, Gaps, Numbers, numeric, object, withEnds } from "./benchmark_parts";
import type { Bar } from "./charts";
import { Score, Section, SortedTable, type Column } from "./common";
import { Few, fewNote } from "./plot";
import { count } from "./text";
import type { Cell, JsonObject } from "./types";

const KINDS = ["categories", "fields", "subfields"];

export function Mmie({ set, part }: { set: string; part: JsonObject }) {
  const kinds = KINDS.filter((kind) => Object.keys(object(part[kind])).length);
  const [kind, choose] = useState(kinds[0] ?? "");
  const bars = Object.entries(object(part[kind])).map(([name, value]): Bar => {
    const row = object(value);
    return { name, ...withEnds(row.mean ?? row.official, row.interval, row.scored) };
  });
  return (
    <Section title={`MMIE, ${set}`}>
      <Gaps gaps={part.gaps} />
      <Choose names={kinds} now={kind} choose={choose} label="By" />
      {bars.some((bar) => bar.value !== null) ? (
        <Numbers bars={bars} label={`MMIE by ${kind}`} />
      ) : (
        <p class="quiet">The judge has scored nothing yet.</p>
      )}
      <Agreement tasks={object(part.tasks)} />
    </Section>
  );
}

interface Fact {
  task: string;
  about: string;
  name: string;
  cell: Cell;
}

const REPEATS: [string, string][] = [
  ["weighted_kappa", "weighted kappa"],
  ["krippendorff_alpha", "Krippendorff's alpha"],
  ["all_alike", "share of samples with the same score each time"],
];
const HUMANS: [string, string][] = [
  ["pearson", "Pearson's correlation"],
  ["cosine", "cosine"],
  ["bias", "judge less human"],
  ["mae", "mean absolute error"],
  ["mse", "mean squared error"],
];

function facts(task: string, part: JsonObject): Fact[] {
  const repeats = object(part.repeats);
  const human = object(part.calibration);
  const corrected = object(human.corrected);
  const of = (found: JsonObject, names: [string, string][], about: string): Fact[] =>
    found.n === undefined || found.n === null
      ? []
      : names.map(([key, name]) => ({ task, about, name, cell: withEnds(found[key], null, found.n) }));
  const mean = { task, about: "human scores", name: "mean corrected for the judge's bias", cell: withEnds(corrected.mean, corrected.interval, human.n) };
  return [
    ...of(repeats, REPEATS, `${count(numeric(repeats.askings))} askings`),
    ...of(human, HUMANS, "human scores"),
    ...(mean.cell.value === null ? [] : [mean]),
  ];
}

function Agreement({ tasks }: { tasks: JsonObject }) {
  const found = Object.entries(tasks).flatMap(([task, part]) => facts(task, object(part)));
  if (!found.length) return <p class="quiet">Agreement of the judge was not measured (--judge_repeats, --human_scores).</p>;
  const columns: Column<Fact>[] = [
    { name: "Task", value: (fact) => fact.task },
    { name: "Compared with", value: (fact) => fact.about },
    { name: "Measure", value: (fact) => fact.name },
    { name: "Value", class: "number", value: (fact) => fact.cell.value, cell: (fact) => <Score cell={fact.cell} /> },
    { name: "N", class: "number", value: (fact) => fact.cell.n, cell: (fact) => <>{count(fact.cell.n)}<Few n={fact.cell.n} /></> },
  ];
  return (
    <>
      <h3>Agreement of the judge</h3>
      <SortedTable rows={found} columns={columns} label="Agreement of the judge" note={fewNote(found.map((fact) => fact.cell), "samples")} />
    </>
  );
}
