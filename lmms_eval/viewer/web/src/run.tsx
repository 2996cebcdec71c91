// The pages of one run: a header that stays in sight, and tabs with addresses of their own.
import type { ComponentChildren } from "preact";

import { Parsing } from "./audit";
import { Benchmarks, hasBenchmarks } from "./benchmarks";
import { Biases } from "./biases";
import { Breakdowns, Distributed } from "./breakdowns";
import { Certainty } from "./certainty";
import { Score, Section, SortedTable, useLoaded, Waiting, Warnings, type Column } from "./common";
import { headlines, percent, State } from "./home";
import { LiveSection } from "./live";
import { NeedsMedia } from "./needs_media";
import { Prompts } from "./prompts";
import { Provenance } from "./provenance";
import { MOST, Results } from "./results";
import { address, ALL, type Route } from "./route";
import { TabList, TabPanel, type Tab } from "./tabs";
import { alike, count, plain, Text } from "./text";
import type { Outcomes, RunDetails, RunEntry, TaskEntry } from "./types";

const PAGES: Record<string, string> = { breakdown: "Breakdown", audit: "Parsing", details: "Run details" };

/** The tab of an address: behind the question mark, since what stands behind the run's name is the name of a task. */
export function tabOf(route: Route): string {
  if (route.task !== undefined) return "samples";
  const page = route.params.get("page") ?? "";
  return Object.hasOwn(PAGES, page) ? page : "overview";
}

function tabsOf(run: RunEntry): Tab[] {
  const all = run.tasks.length === 1 ? run.tasks[0]?.name : ALL;
  return [
    { key: "overview", name: "Overview", address: address([run.name]) },
    { key: "samples", name: "Samples", address: address([run.name, all]) },
    ...Object.entries(PAGES).map(([key, name]): Tab => ({ key, name, address: address([run.name], new URLSearchParams({ page: key })) })),
  ];
}

/** Header and tabs around a page of a run. */
export function RunFrame({ run, route, children }: { run: RunEntry; route: Route; children: ComponentChildren }) {
  const tab = tabOf(route);
  const isList = tab === "samples"; // it has a heading of its own
  const Title = isList ? "p" : "h1";
  return (
    <div class="run-page">
      <section class="run-head" aria-label="Run">
        <div class="run-facts">
          <div>
            <Title class="title">
              <Text>{run.name}</Text>
            </Title>
            <p class="quiet">
              <State run={run} /> {run.model !== run.name && <><Text>{run.model}</Text> · </>}
              {run.date.slice(0, 10) || "no date"} · {count(run.tasks.reduce((sum, task) => sum + task.samples, 0))} samples
              {run.tasks.length > 1 && ` of ${run.tasks.length} tasks`}
            </p>
          </div>
          <Headline run={run} />
        </div>
        <TabList tabs={tabsOf(run)} now={tab} label="Pages of the run" />
      </section>
      <TabPanel now={tab}>{children}</TabPanel>
    </div>
  );
}

/** The run's own number, if it has one: of its benchmark, or of its only task. */
function Headline({ run }: { run: RunEntry }) {
  const [first] = run.headlines.length || run.tasks.length === 1 ? headlines(run) : [];
  if (!first || first.value === null || run.state === "withheld") return null;
  return (
    <p class="headline" title={plain(first.task)}>
      <small>{plain(first.metric)}</small>
      <Score cell={first} shown={alike([first.value, first.low, first.high])} />
      <small>
        over {count(first.n)} {first.over ?? "questions"}
      </small>
    </p>
  );
}

export function RunPage({ run, route }: { run: RunEntry; route: Route }) {
  const Panel = { breakdown: BreakdownTab, audit: Parsing, details: DetailsTab }[tabOf(route)] ?? OverviewTab;
  return (
    <main>
      <Panel run={run} />
    </main>
  );
}

const useDetails = (run: RunEntry) => useLoaded<RunDetails>(`run-${run.number}`);

function OverviewTab({ run }: { run: RunEntry }) {
  const { content, error } = useDetails(run);
  return (
    <>
      <Warnings warnings={run.warnings} />
      {run.live && <LiveSection run={run} live={run.live} />}
      <Section title="Results">
        <OutcomeSums run={run} />
        <Results run={run} />
      </Section>
      {content ? <Certainty details={content} /> : <Waiting error={error} />}
    </>
  );
}

function BreakdownTab({ run }: { run: RunEntry }) {
  const { content, error } = useDetails(run);
  if (!content) return <Waiting error={error} />;
  return (
    <>
      <Benchmarks document={content.document} />
      <Breakdowns run={run} details={content} hasOthers={hasBenchmarks(content.document)} />
      <Prompts document={content.document} />
      <NeedsMedia document={content.document} />
      <Biases document={content.document} />
    </>
  );
}

function DetailsTab({ run }: { run: RunEntry }) {
  const { content, error } = useDetails(run);
  if (!content) return <Waiting error={error} />;
  return (
    <>
      <Section title="How it was made">
        <Provenance run={run} details={content} />
      </Section>
      <Section title="Outcomes">
        <OutcomeTable run={run} />
      </Section>
      <Distributed run={run} details={content} />
    </>
  );
}

const KINDS: [keyof Outcomes, string][] = [
  ["requested", "Requested"],
  ["scored", "Scored"],
  ["unscored", "Unscored"],
  ["failed", "Failed"],
  ["not_asked", "Not asked"],
  ["blank", "Blank"],
  ["filtered", "Filtered"],
  ["truncated", "Truncated"],
];

/** Sums over all tasks, as one bar of kinds would show them. */
function OutcomeSums({ run }: { run: RunEntry }) {
  const sums = KINDS.map(([key, name]): [string, number] => [
    name,
    run.tasks.reduce((sum, task) => sum + ((task.outcomes[key] as number | undefined) ?? 0), 0),
  ]);
  return (
    <p class="quiet">
      {sums
        .filter(([, number], place) => place < 2 || number > 0)
        .map(([name, number]) => `${name}: ${count(number)}`)
        .join(" · ")}
    </p>
  );
}

function OutcomeTable({ run }: { run: RunEntry }) {
  const kinds = KINDS.filter(([key], place) => place < 2 || run.tasks.some((task) => task.outcomes[key]));
  const columns: Column<TaskEntry>[] = [
    {
      name: "Task",
      value: (task) => task.name,
      cell: (task) => (
        <a href={address([run.name, task.name])}>
          <Text>{task.name}</Text>
        </a>
      ),
    },
    ...kinds.map(
      ([key, name]): Column<TaskEntry> => ({
        name,
        class: "number",
        value: (task) => (task.outcomes[key] as number | undefined) ?? null,
        cell: (task) => count(task.outcomes[key] as number | undefined),
      }),
    ),
    { name: "Coverage", class: "number", value: (task) => task.outcomes.coverage ?? null, cell: (task) => percent(task.outcomes.coverage ?? null) },
    {
      name: "Reasons",
      value: (task) => Object.keys(task.outcomes.reasons ?? {}).join("; "),
      cell: (task) =>
        Object.entries(task.outcomes.reasons ?? {}).map(([reason, times]) => (
          <span class="line">
            <Text>{reason}</Text> × {count(times)}
          </span>
        )),
    },
  ];
  const rows = [...run.tasks].sort((a, b) => (a.outcomes.coverage ?? 1) - (b.outcomes.coverage ?? 1)); // what is missing first
  return <SortedTable rows={rows} columns={columns} label="Outcomes" most={MOST} />;
}
