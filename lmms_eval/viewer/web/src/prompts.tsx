// Scores over variants of a task's prompt, with their intervals, their spread, and where the variance comes from.
import { useState } from "preact/hooks";

import { Choose, counted, Numbers, numeric, object } from "./benchmark_parts";
import type { Bar } from "./charts";
import { Section } from "./common";
import { number, Text } from "./text";
import type { Json, JsonObject } from "./types";

export function Prompts({ document }: { document: JsonObject }) {
  const tasks = object(document.prompt_variants);
  const names = Object.keys(tasks).filter((task) => Object.keys(object(object(tasks[task]).metrics)).length);
  const [name, choose] = useState(names[0] ?? "");
  if (!names.length) return null;
  return (
    <Section title="Prompts">
      <Choose names={names} now={name} choose={choose} label="Task" />
      <Metrics key={name} metrics={object(object(tasks[name]).metrics)} />
    </Section>
  );
}

function Metrics({ metrics }: { metrics: JsonObject }) {
  const names = Object.keys(metrics);
  const [name, choose] = useState(names[0] ?? "");
  const found = object(metrics[name]);
  const bars = Object.entries(object(found.scores)).map(([prompt, entry]) => bar(prompt, object(entry).score, entry, found.n));
  bars.push(bar("mean, these prompts", found.mean, found.these, found.n));
  bars.push(bar("mean, prompts like these", found.mean, found.like_these, found.n));
  return (
    <>
      <Choose names={names} now={name} choose={choose} label="Metric" />
      <Numbers bars={bars} label={`${name.split(",")[0]} by prompt`} />
      <Spread found={found} />
    </>
  );
}

function bar(name: string, value: Json | undefined, entry: Json | undefined, n: Json | undefined): Bar {
  const { low, high, method, reason } = object(entry);
  const how = typeof method === "string" ? method : reason;
  return {
    name,
    value: numeric(value),
    low: numeric(low),
    high: numeric(high),
    n: numeric(n) ?? 0,
    method: typeof how === "string" ? how : undefined,
  };
}

function Spread({ found }: { found: JsonObject }) {
  const { sd, lowest, highest } = object(found.spread);
  const { questions, prompts, rest } = object(found.variance);
  const missing = numeric(found.missing) ?? 0;
  return (
    <p class="quiet">
      SD of the prompts {number(numeric(sd))}, from <Text>{String(lowest)}</Text> to <Text>{String(highest)}</Text>. Variance: questions{" "}
      {number(numeric(questions))}, prompts {number(numeric(prompts))}, interaction and answers {number(numeric(rest))}.
      {missing > 0 && ` ${counted(missing, "document")} without a number with one of the prompts left out.`}
    </p>
  );
}
