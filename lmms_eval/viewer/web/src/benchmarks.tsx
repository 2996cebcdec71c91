// The four benchmarks' own breakdowns, as their reports state them in the results document.
import { useId, useState } from "preact/hooks";

import { Bars, Curve, isFew, Radar, type Bar } from "./charts";
import { Score, Section, SortedTable, type Column } from "./common";
import { count, number, plain, Text } from "./text";
import type { Cell, Json, JsonObject } from "./types";

const object = (value: Json | undefined): JsonObject =>
  value !== null && typeof value === "object" && !Array.isArray(value) ? value : {};
const list = (value: Json | undefined): JsonObject[] => (Array.isArray(value) ? value.map(object) : []);
const numeric = (value: Json | undefined): number | null => (typeof value === "number" ? value : null);

/** A score with its ends, however the benchmark's report calls them. */
function cell(value: Json | undefined, n: Json | undefined): Cell {
  const found = object(value);
  return { value: numeric(found.score), low: numeric(found.low), high: numeric(found.high), n: numeric(n) ?? 0 };
}

export function Benchmarks({ document }: { document: JsonObject }) {
  return (
    <>
      {Object.entries(object(document.megabench_breakdown)).map(([set, part]) => (
        <MegaBench set={set} part={object(part)} />
      ))}
      {Object.entries(object(document.milebench_report)).map(([set, part]) => (
        <MileBench set={set} part={object(part)} />
      ))}
      {Object.entries(object(document.mmie_report)).map(([set, part]) => (
        <Mmie set={set} part={object(part)} />
      ))}
      {Object.entries(object(document.general_bench_report)).map(([set, part]) => (
        <GeneralBench set={set} part={object(part)} />
      ))}
    </>
  );
}

function Gaps({ gaps }: { gaps: Json | undefined }) {
  if (!Array.isArray(gaps) || !gaps.length) return null;
  return (
    <p class="quiet">
      No published number: <Text>{gaps.slice(0, 4).join("; ")}</Text>
      {gaps.length > 4 && ` and ${gaps.length - 4} more`}
    </p>
  );
}

const NUMBERS: Column<Bar>[] = [
  { name: "Part", value: (bar) => bar.name },
  { name: "Score", class: "number", value: (bar) => bar.value, cell: (bar) => <Score cell={bar} /> },
  { name: "N", class: "number", value: (bar) => bar.n, cell: (bar) => count(bar.n) },
];

function Numbers({ bars, label }: { bars: Bar[]; label: string }) {
  const table = useId();
  return (
    <div class="halves">
      <Bars bars={bars} label={label} table={table} />
      <SortedTable id={table} rows={bars} columns={NUMBERS} label={label} rowClass={(bar) => (isFew(bar) ? "few" : "")} />
    </div>
  );
}

function Choose({ names, now, choose, label }: { names: string[]; now: string; choose: (name: string) => void; label: string }) {
  if (names.length < 2) return null;
  return (
    <label class="field">
      {label}
      <select value={now} onChange={(event) => choose(event.currentTarget.value)}>
        {names.map((name) => (
          <option value={name}>{plain(name.replaceAll("_", " "))}</option>
        ))}
      </select>
    </label>
  );
}

function megaBar(name: string, value: Json | undefined): Bar {
  const part = object(value);
  const [low, high] = Array.isArray(part.ci95) ? part.ci95 : [];
  return { name, value: numeric(part.score), low: numeric(low), high: numeric(high), n: numeric(part.count ?? part.num_eval_tasks) ?? 0 };
}

function MegaBench({ set, part }: { set: string; part: JsonObject }) {
  const intervals = object(part.intervals);
  const dimensions: JsonObject = { summary: intervals.model_summary ?? null, ...object(intervals.keyword_stats) };
  const names = Object.keys(dimensions);
  const [now, choose] = useState(names[0] ?? "");
  const bars = Object.entries(object(dimensions[now])).map(([name, value]) => megaBar(name, value));
  return (
    <Section title={`MEGA-Bench, ${set.replaceAll("_", " ")} set`}>
      <Gaps gaps={part.gaps} />
      <Choose names={names} now={now} choose={choose} label="Dimension" />
      {bars.length > 0 && <Numbers bars={bars} label={`MEGA-Bench by ${now}`} />}
    </Section>
  );
}

function MileBench({ set, part }: { set: string; part: JsonObject }) {
  const rows = list(part.by_images).filter((row) => Array.isArray(row.by_sample) || row.by_sample);
  const scopes = [...new Set(rows.map((row) => String(row.scope)))];
  const [scope, choose] = useState(scopes[0] ?? "");
  const curve = rows.filter((row) => row.scope === scope);
  const groups = (name: string): Bar[] =>
    Object.entries(object(part[name])).map(([key, value]) => {
      const group = object(value);
      return { name: key, ...cell(group.official ?? object(group.partial).official, group.samples) };
    });
  return (
    <Section title={`MileBench, ${set}`}>
      {Boolean(part.is_partial) && <p class="quiet">Partial: no published number.</p>}
      <h3>Score by number of pictures</h3>
      <Choose names={scopes} now={scope} choose={choose} label="Tasks" />
      <Curve
        labels={curve.map((row) => String(row.images))}
        series={["official", "fixed"].map((rule) => ({
          name: rule,
          cells: curve.map((row) => cell(object(row.by_sample)[rule], row.samples)),
        }))}
        label="Score by number of pictures"
      />
      <Numbers bars={curve.map((row) => ({ name: String(row.images), ...cell(object(row.by_sample).official, row.samples) }))} label="By number of pictures" />
      {Object.entries(object(part.needle_grids)).map(([name, grid]) => (
        <Needles name={name} grid={object(grid)} />
      ))}
      <h3>Groups</h3>
      <Numbers bars={[...groups("overall"), ...groups("groups")]} label="Groups" />
    </Section>
  );
}

/** How often a needle was found, by its depth and the length of the text around it. */
function Needles({ name, grid }: { name: string; grid: JsonObject }) {
  const depths = (Array.isArray(grid.depths) ? grid.depths : []).map(String);
  const lengths = (Array.isArray(grid.lengths) ? grid.lengths : []).map(String);
  const at = (key: string, row: number, column: number): number | null => {
    const lines = grid[key];
    const line = Array.isArray(lines) ? lines[row] : undefined;
    return Array.isArray(line) ? numeric(line[column]) : null;
  };
  const largest = depths.some((_, row) => lengths.some((_, column) => (at("official", row, column) ?? 0) > 1)) ? 100 : 1;
  return (
    <div class="scroll" role="region" aria-label={plain(name)} tabIndex={0}>
      <table class="heat">
        <caption>
          <Text>{name}</Text>: depth of the needle by number of pictures
        </caption>
        <thead>
          <tr>
            <th>Depth</th>
            {lengths.map((length) => (
              <th class="number">
                <Text>{length}</Text>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {depths.map((depth, row) => (
            <tr>
              <th scope="row">
                <Text>{depth}</Text>
              </th>
              {lengths.map((_, column) => {
                const value = at("official", row, column);
                const n = at("samples", row, column) ?? 0;
                const step = value === null ? "" : `step${Math.round((4 * value) / largest)}`;
                return (
                  <td class={`number ${step}`}>
                    {number(value)}
                    <small>{value === null ? "" : ` n = ${n}`}</small>
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const KINDS = ["categories", "fields", "subfields"];

function Mmie({ set, part }: { set: string; part: JsonObject }) {
  const kinds = KINDS.filter((kind) => Object.keys(object(part[kind])).length);
  const [kind, choose] = useState(kinds[0] ?? "");
  const bars = Object.entries(object(part[kind])).map(([name, value]): Bar => {
    const row = object(value);
    const ends = Array.isArray(row.interval) ? row.interval : [];
    return { name, value: numeric(row.official ?? row.mean), low: numeric(ends[0]), high: numeric(ends[1]), n: numeric(row.scored) ?? 0 };
  });
  const remarks = Object.entries(object(part.tasks)).flatMap(([task, value]) => agreement(task, object(value)));
  return (
    <Section title={`MMIE, ${set}`}>
      <Gaps gaps={part.gaps} />
      <Choose names={kinds} now={kind} choose={choose} label="By" />
      {bars.some((bar) => bar.value !== null) ? (
        <Numbers bars={bars} label={`MMIE by ${kind}`} />
      ) : (
        <p class="quiet">The judge has scored nothing yet.</p>
      )}
      {remarks.length > 0 && <h3>Agreement of the judge</h3>}
      {remarks.map((text) => (
        <p>
          <Text>{text}</Text>
        </p>
      ))}
    </Section>
  );
}

function agreement(task: string, part: JsonObject): string[] {
  const repeats = object(part.repeats);
  const human = object(part.calibration);
  return [
    repeats.n === undefined
      ? ""
      : `${task}: ${number(numeric(repeats.askings))} askings of ${number(numeric(repeats.n))} samples: weighted kappa ` +
        `${number(numeric(repeats.weighted_kappa))}, alpha ${number(numeric(repeats.krippendorff_alpha))}`,
    human.n === undefined
      ? ""
      : `${task}: against ${number(numeric(human.n))} human scores: Pearson ${number(numeric(human.pearson))}, cosine ` +
        `${number(numeric(human.cosine))}, MSE ${number(numeric(human.mse))}, MAE ${number(numeric(human.mae))}`,
  ].filter(Boolean);
}

const MODALITY = /^(image|video|audio|3d|nlp)(?:_(comprehension|generation))?/;

function GeneralBench({ set, part }: { set: string; part: JsonObject }) {
  const tasks = list(part.tasks);
  const percents = tasks.filter((task) => task.unit === "percent" && typeof task.official === "number");
  const names = [...new Set(percents.map((task) => MODALITY.exec(String(task.task))?.[0] ?? "other"))];
  const mean = (key: string) => (name: string): Cell => {
    const values = percents
      .filter((task) => (MODALITY.exec(String(task.task))?.[0] ?? "other") === name)
      .map((task) => numeric(task[key]))
      .filter((value): value is number => value !== null);
    const value = values.length ? values.reduce((sum, one) => sum + one, 0) / values.length : null;
    return { value, low: null, high: null, n: values.length };
  };
  const levels = Object.entries(object(part.levels)).map(([level, value]) => ({
    name: `Level ${level}`,
    value: numeric(value),
    low: null,
    high: null,
    n: tasks.length,
  }));
  const columns: Column<JsonObject>[] = [
    { name: "Task", value: (task) => String(task.task) },
    { name: "Measure", value: (task) => String(task.measure) },
    { name: "Official", class: "number", value: (task) => numeric(task.official), cell: (task) => number(numeric(task.official)) },
    { name: "Strict", class: "number", value: (task) => numeric(task.strict), cell: (task) => number(numeric(task.strict)) },
    { name: "Stderr", class: "number", value: (task) => numeric(task.stderr), cell: (task) => number(numeric(task.stderr)) },
    { name: "N", class: "number", value: (task) => numeric(task.answered), cell: (task) => `${count(numeric(task.answered))} of ${count(numeric(task.expected))}` },
    { name: "Status", value: (task) => String(task.status) },
  ];
  return (
    <Section title={`General-Bench, ${set}`}>
      <div class="halves">
        {names.length > 2 && (
          <Radar
            labels={names.map((name) => name.replaceAll("_", " "))}
            series={[{ name: "official", cells: names.map(mean("official")) }]}
            label="Mean of percentages by modality"
          />
        )}
        {levels.length > 0 && (
          <div>
            <h3>Levels</h3>
            <Bars bars={levels} label="General-Level by level" />
            <p class="quiet">
              {levels.map((level) => `${level.name}: ${number(level.value)}`).join(" · ")}, over {tasks.length} tasks of the run.
            </p>
          </div>
        )}
      </div>
      <p class="quiet">
        Means of the tasks in percent: {names.map((name) => `${name.replaceAll("_", " ")} ${number(mean("official")(name).value)} (${mean("official")(name).n})`).join(", ")}.
      </p>
      <details>
        <summary>All {tasks.length} tasks</summary>
        <SortedTable rows={tasks} columns={columns} label="Tasks of General-Bench" rowClass={(task) => (isFew({ n: numeric(task.answered) ?? 0 }) ? "few" : "")} />
      </details>
    </Section>
  );
}
