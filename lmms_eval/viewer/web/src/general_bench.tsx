// General-Bench: levels of each modality as a radar, the ladder of levels, and all tasks.
import { list, Numbers, numeric, object, withEnds } from "./benchmark_parts";
import { Radar, type Bar } from "./charts";
import { Section, SortedTable, type Column } from "./common";
import { Few, fewNote, scoreColumn } from "./plot";
import { alike, count, number, Text } from "./text";
import type { Cell, Json, JsonObject } from "./types";

const LEVELS = ["level2", "level3", "level4", "level5"];
const NAMES: Record<string, string> = { level2: "Level 2", level3: "Level 3", level4: "Level 4", level5: "Level 5" };

export function GeneralBench({ set, part }: { set: string; part: JsonObject }) {
  const found = object(part.general_level);
  return (
    <Section title={`General-Bench, ${set}`}>
      {Object.keys(found).length > 0 ? (
        <>
          <Ladder found={found} />
          <Modalities found={found} />
        </>
      ) : (
        <p class="quiet">No task has a score, or the run is older than the levels in its results: no General-Level.</p>
      )}
      <Tasks tasks={list(part.tasks)} files={Array.isArray(part.from_files) ? part.from_files : []} />
    </Section>
  );
}

const REST: Column<readonly [string, JsonObject]>[] = [
  { name: "Level", class: "whole", value: ([level]) => NAMES[level] ?? level },
  { name: "Without a score", title: "Tasks without a score, which count as 0", class: "number", value: ([, one]) => numeric(one.missing_rows) },
  { name: "If at specialist", title: "The level with the specialists' scores for these tasks", class: "number", value: ([, one]) => numeric(one.if_at_specialist), cell: ([, one]) => number(numeric(one.if_at_specialist)) },
  { name: "Wins needed", title: "Wins over specialists that the next level takes", class: "number", value: ([, one]) => numeric(one.wins_needed) ?? "out of reach" },
];

function Ladder({ found }: { found: JsonObject }) {
  const levels = object(found.levels);
  const tasks = Object.values(object(found.modalities)).reduce<number>((sum, one) => sum + (numeric(object(one).supported) ?? 0), 0);
  const bars = LEVELS.filter((level) => levels[level] !== undefined).map((level): Bar => {
    const sensitivity = object(object(found.sensitivity)[level]);
    const all = tasks + (level === "level5" ? (numeric(object(found.language).supported) ?? 0) : 0);
    return { name: NAMES[level] ?? level, ...withEnds(levels[level], sensitivity.interval, all, sensitivity.no_interval) };
  });
  const rest = LEVELS.map((level) => [level, object(object(found.sensitivity)[level])] as const).filter(([level]) => levels[level] !== undefined);
  return (
    <>
      <h3>Levels</h3>
      <p class="quiet">Level reached: {found.level_reached === null ? "none" : String(found.level_reached)}. Tasks: those with a score above 0.</p>
      <Numbers bars={bars} label="General-Level by level" units="tasks" />
      <h3>What is missing</h3>
      <SortedTable rows={rest} columns={REST} label="What the levels lack" />
    </>
  );
}

function cellOf(found: JsonObject, modality: string, level: string): Cell {
  const one = object(object(found.modalities)[modality]);
  const ends = object(object(object(object(found.sensitivity)[level]).modalities)[modality]);
  return withEnds(one[level], ends.interval, one.supported, ends.no_interval);
}

function Modalities({ found }: { found: JsonObject }) {
  const names = Object.keys(object(found.modalities));
  const levels = LEVELS.slice(0, 3).filter((level) => names.some((name) => object(object(found.modalities)[name])[level] !== undefined));
  const columns: Column<string>[] = [
    { name: "Modality", value: (name) => name },
    ...levels.map((level) => scoreColumn(names, NAMES[level] ?? level, (name) => cellOf(found, name, level))),
    { name: "N", title: "Tasks with a score above 0, of all", class: "number", value: (name) => tasksOf(found, name)[0], cell: (name) => <>{tasksOf(found, name).map(count).join(" of ")}<Few n={tasksOf(found, name)[0]} /></> },
  ];
  const language = object(found.language);
  return (
    <>
      <h3>Modalities</h3>
      <div class="halves stacked">
        {names.length > 2 && (
          <Radar
            labels={names}
            series={levels.map((level) => ({ name: NAMES[level] ?? level, cells: names.map((name) => cellOf(found, name, level)) }))}
            label="Levels by modality"
          />
        )}
        <SortedTable rows={names} columns={columns} label="Levels by modality" note={fewNote(names.map((name) => ({ ...cellOf(found, name, "level2"), n: tasksOf(found, name)[0] })), "tasks")} />
      </div>
      {language.score !== undefined && (
        <p class="quiet">
          Language: {number(numeric(language.score))} of 100 for level 5, from {count(numeric(language.wins))} wins in {count(numeric(language.T))} tasks,{" "}
          {count(numeric(language.supported))} of them with a score above 0.
        </p>
      )}
    </>
  );
}

const tasksOf = (found: JsonObject, name: string): [number, number] => {
  const one = object(object(found.modalities)[name]);
  return [numeric(one.supported) ?? 0, numeric(one.total) ?? 0];
};

function Tasks({ tasks, files }: { tasks: JsonObject[]; files: Json[] }) {
  const shown = alike(tasks.flatMap((task) => [numeric(task.official), numeric(task.strict), numeric(task.stderr)]));
  const value = (key: string): Column<JsonObject> => ({
    name: key.charAt(0).toUpperCase() + key.slice(1),
    class: "number",
    value: (task) => numeric(task[key]),
    cell: (task) => shown(numeric(task[key])),
  });
  const columns: Column<JsonObject>[] = [
    {
      name: "Task",
      value: (task) => String(task.task),
      cell: (task) => (
        <>
          <Text>{task.task}</Text> {files.includes(task.task ?? null) && <span class="badge">from files</span>}
        </>
      ),
    },
    { name: "Measure", value: (task) => String(task.measure) },
    value("official"),
    value("strict"),
    value("stderr"),
    { name: "N", class: "number", value: (task) => numeric(task.answered), cell: (task) => <>{count(numeric(task.answered))} of {count(numeric(task.expected))}<Few n={numeric(task.answered) ?? 0} /></> },
    { name: "Status", value: (task) => String(task.status) },
  ];
  return (
    <details>
      <summary>All {tasks.length} tasks</summary>
      <SortedTable rows={tasks} columns={columns} label="Tasks of General-Bench" />
    </details>
  );
}
