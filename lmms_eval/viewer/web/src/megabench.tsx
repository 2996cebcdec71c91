// MEGA-Bench: core, open and overall, and the five dimensions of its tasks.
import { counted, Gaps, Numbers, numeric, object, spaced, withEnds } from "./benchmark_parts";
import type { Bar } from "./charts";
import { Section } from "./common";
import { Text } from "./text";
import type { JsonObject } from "./types";

const DIMENSIONS: Record<string, string> = {
  skills: "Skills",
  input_format: "Input format",
  output_format: "Output format",
  input_num: "Visual inputs",
  app: "Application",
};

function bars(parts: JsonObject): Bar[] {
  return Object.entries(parts).map(([name, value]) => {
    const part = object(value);
    return { name, ...withEnds(part.score, part.ci95, part.count ?? part.num_eval_tasks, part.no_interval) };
  });
}

function summary(parts: JsonObject): Bar[] {
  const tasks = ["core", "open"].reduce((sum, side) => sum + (numeric(object(parts[side]).num_eval_tasks) ?? 0), 0);
  return bars(parts)
    .filter((bar) => bar.value !== null)
    .map((bar) => (bar.name === "overall" ? { ...bar, n: tasks } : bar));
}

export function MegaBench({ set, part }: { set: string; part: JsonObject }) {
  const intervals = object(part.intervals);
  return (
    <Section title={`MEGA-Bench, ${set.replaceAll("_", " ")} set`}>
      <Gaps gaps={part.gaps} />
      <Numbers bars={summary(object(intervals.model_summary))} label="MEGA-Bench, summary" units="tasks" />
      {Object.entries(object(intervals.keyword_stats)).map(([name, parts]) => (
        <details class="breakdown" open>
          <summary>
            <h3>{DIMENSIONS[name] ?? <Text>{spaced(name)}</Text>}</h3>
            <span class="quiet">{counted(Object.keys(object(parts)).length, "keyword")}</span>
          </summary>
          <Numbers bars={bars(object(parts))} label={`MEGA-Bench by ${name}`} units="tasks" />
        </details>
      ))}
    </Section>
  );
}
