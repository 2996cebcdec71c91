// The first page: the runs, to find, open and compare them, what to be warned of, and their scores by task.
import { useState } from "preact/hooks";

import { cut } from "./amounts";
import { Score, Section, SortedTable, Waiting, Warnings, type Column } from "./common";
import { useKeys } from "./keys";
import { LiveLine, wholeScore } from "./live";
import { Parted, shortNames } from "./name";
import { MOST } from "./pairs";
import { address, go, pageAddress } from "./route";
import { Tabled } from "./tabled";
import { count, plain, seconds, Text, told } from "./text";
import type { JsonObject, Report, ResultRow, RunEntry } from "./types";

/** Characters of what chose the samples: --ids may name thousands. */
const MOST_CHOSEN = 120;

/** The first number of each task. */
function firsts(run: RunEntry): ResultRow[] {
  const seen = new Set<string>();
  return run.rows.filter((row) => !seen.has(row.task) && (row.value !== null || row.withheld) && seen.add(row.task));
}

/** The benchmarks' own numbers, then the first one of each task. */
export const headlines = (run: RunEntry): ResultRow[] => [...run.headlines.filter((row) => row.value !== null), ...firsts(run)];

export function total(run: RunEntry, key: string): number | null {
  const sum = (run.usage.total as JsonObject | undefined)?.[key];
  return typeof sum === "number" ? sum : null;
}

export function cost(run: RunEntry): string {
  const found = run.usage.cost as JsonObject | undefined;
  const amount = found?.total ?? found?.cost ?? null;
  return typeof amount === "number" ? `${amount.toFixed(2)} ${found?.currency ?? ""}` : "–";
}

export function coverage(run: RunEntry): number | null {
  const asked = run.tasks.reduce((sum, task) => sum + (task.outcomes.requested ?? task.samples), 0);
  const scored = run.tasks.reduce((sum, task) => sum + (task.outcomes.scored ?? 0), 0);
  return asked ? scored / asked : null;
}

const STAGES = ["collect", "ask", "score", "check", "aggregate"];

/** The time of all stages, and of those that took a fifth of it or more. */
function Time({ run }: { run: RunEntry }) {
  const whole = duration(run);
  const all = STAGES.filter((stage) => typeof run.timing[stage] === "number").map((stage): [string, number] => [stage, run.timing[stage] as number]);
  return (
    <span title={all.map(([stage, time]) => `${stage} ${seconds(time)}`).join(" · ")}>
      {seconds(whole)}
      {all
        .filter(([, time]) => whole && time >= whole / 5)
        .map(([stage, time]) => (
          <small class="line">
            {stage} {seconds(time)}
          </small>
        ))}
    </span>
  );
}

const duration = (run: RunEntry): number | null => {
  const known = STAGES.map((stage) => run.timing[stage]).filter((value): value is number => typeof value === "number");
  return known.length ? known.reduce((sum, value) => sum + value, 0) : null;
};

const date = (run: RunEntry): string => run.date.replace("T", " ").slice(0, 16);

/** Why a run has no score, or is not whole. */
function trouble(run: RunEntry): string {
  if (run.live?.is_going) return "";
  const sum = (key: "requested" | "failed" | "unscored" | "not_asked"): number => run.tasks.reduce((all, task) => all + (task.outcomes[key] ?? 0), 0);
  const kinds = [["failed", "failed"], ["unscored", "could not be scored"], ["not_asked", "were not asked"]] as const;
  const found = kinds.filter(([key]) => sum(key) > 0).map(([key, text]) => `${count(sum(key))} ${text}`);
  const documents = found.length ? `of ${count(sum("requested"))} documents ${found.join(", ")}` : "";
  if (run.state === "withheld" || run.rows.some((row) => row.withheld)) return `Score withheld${documents && `: ${documents}`}`;
  if (!isWhole(run) && documents) return documents.replace("of", "Of");
  return run.warnings.find((one) => one.kind === "problem")?.text ?? "";
}

const isWhole = (run: RunEntry): boolean => run.state === "complete" || run.state === "stopped early" || !run.state;

/** Arguments of the model that its name and its server leave open. */
const settings = (run: RunEntry): string =>
  told(run.model_args).replace(/(^|,)(model|pretrained|base_url|api_key|num_concurrent|timeout|max_retries)=[^,]*/g, "").replace(/^,/, "") || (run.name.includes(run.model) ? "" : run.model);

/** What a search finds a run by. */
const words = (run: RunEntry): string =>
  [run.name, run.model, told(run.model_args), run.state, date(run), ...run.tasks.map((task) => task.name)].join("\n").toLowerCase();

interface Choosing {
  chosen: ReadonlySet<number>;
  /** Not given where nothing can be compared. */
  choose?: (run: RunEntry) => void;
}

const columnsOf = ({ chosen, choose }: Choosing, runs: RunEntry[]): Column<RunEntry>[] => {
  const short = new Map(shortNames(runs.map((run) => run.name)).map((name, at) => [runs[at]?.number, name]));
  const all: Column<RunEntry>[] = [
    {
      name: "Run",
      value: (run) => run.name,
      cell: (run) => (
        <div class="chosen-run">
          {choose && (
            <input
              disabled={run.live !== undefined} type="checkbox" checked={chosen.has(run.number)} aria-label={plain(`Choose ${run.name} to compare`)} onChange={() => choose(run)} />
          )}
          <div>
            <a class="run-link" href={address([run.name])} aria-label={plain(run.name)}>
              <Parted>{short.get(run.number) ?? run.name}</Parted>
            </a>
            <small class="sub" title={plain(told(run.model_args) || run.model)}>
              <Text>{settings(run)}</Text>
            </small>
          </div>
        </div>
      ),
    },
    {
      name: "Score",
      title: "First score of the run, with its 95 % interval",
      value: (run) => headlines(run)[0]?.value ?? null,
      cell: (run) => <Headlines run={run} />,
    },
    {
      name: "State",
      value: (run) => run.state || run.kind,
      cell: (run) => (
        <>
          <State run={run} />
          {run.live && <LiveLine live={run.live} />}
          {trouble(run) && (
            <small class="line trouble">
              <Text>{cut(trouble(run), MOST_CHOSEN)}</Text>
            </small>
          )}
        </>
      ),
    },
    {
      name: "Tasks",
      value: (run) => run.tasks.map((task) => task.name).join(", "),
      cell: (run) => <TaskNames run={run} />,
    },
    { name: "When", title: "Start of the run", value: date, cell: (run) => date(run).split(" ").map((part) => <span class="line whole">{part}</span>) },
    {
      name: "Coverage",
      title: "Share of the requested documents that were scored",
      class: "number",
      value: coverage,
      cell: (run) => percent(coverage(run)),
    },
    {
      name: "Tokens",
      title: "Tokens in and out",
      class: "number",
      value: (run) => total(run, "total_tokens"),
      cell: (run) => count(total(run, "total_tokens")),
    },
    { name: "Cost", class: "number", value: cost },
    {
      name: "Time",
      title: "Time of all stages",
      class: "number",
      value: duration,
      cell: (run) => <Time run={run} />,
    },
  ];
  return all.filter((one) => one.name !== "Cost" || runs.some((run) => cost(run) !== "–"));
};

export const percent = (value: number | null): string =>
  value === null ? "–" : `${(100 * value).toFixed(value === 1 || value === 0 ? 0 : 1)} %`;

export function State({ run }: { run: RunEntry }) {
  const state = run.state || run.kind;
  const tone = state === "complete" || !run.state ? "" : run.live?.is_going ? "going" : "grave";
  return <span class={`badge ${tone}`}>{plain(state)}</span>;
}

function TaskNames({ run }: { run: RunEntry }) {
  const shown = run.tasks.slice(0, 2);
  return (
    <>
      {shown.map((task) => (
        <a class="line" href={address([run.name, task.name])} aria-label={plain(task.name)}>
          <Parted>{task.name}</Parted>
        </a>
      ))}
      {run.tasks.length > 2 && <small>and {run.tasks.length - 2} more</small>}
    </>
  );
}

function Headlines({ run }: { run: RunEntry }) {
  const [row, ...others] = headlines(run);
  const provisional = run.live?.is_going;
  const whole = run.live && wholeScore(run.live);
  if (whole && whole.value !== null)
    return (
      <span title="Over the first documents of the random order; the interval holds at every look">
        <Score cell={whole} />
        <small class="line mild">
          {provisional ? "provisional" : "so far"}, over {count(whole.n)} of {count(whole.of)}
        </small>
      </span>
    );
  if (!row) return <span class="quiet">no score{provisional ? " yet" : ""}</span>;
  return (
    <span title={plain(`${row.task}: ${row.metric}`)}>
      <Score cell={row} />
      <small class="line">
        <Parted>{others.length ? row.task : row.metric}</Parted>
        {others.length > 0 && ` and ${others.length} more`}
      </small>
      {provisional && <small class="line mild">provisional</small>}
    </span>
  );
}

function Matrix({ report }: { report: Report }) {
  const named = (row: ResultRow, run: RunEntry): string => (run.headlines.includes(row) ? `${row.task}: ${row.metric}` : row.task);
  const byRun = report.runs.map((run) => new Map(headlines(run).map((row) => [named(row, run), row])));
  const own = new Set(report.runs.flatMap((run) => run.headlines.map((row) => named(row, run))));
  const all = [...new Set(byRun.flatMap((rows) => [...rows.keys()]))];
  const tasks = [...all.filter((name) => own.has(name)), ...all.filter((name) => !own.has(name))];
  const short = shortNames(report.runs.map((run) => run.name));
  return (
    <Tabled label="Scores by task">
      <table class="matrix">
        <thead>
          <tr>
            <th scope="col">Task</th>
            {report.runs.map((run, at) => (
              <th class="number" scope="col">
                <a href={address([run.name])} aria-label={plain(run.name)}>
                  <Parted>{short[at] ?? run.name}</Parted>
                </a>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {tasks.map((task) => (
            <tr>
              <th scope="row">
                <Parted>{task}</Parted>
              </th>
              {report.runs.map((run, place) => (
                <td class="number">
                  <Entry run={run} row={byRun[place]?.get(task)} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Tabled>
  );
}

function Entry({ run, row }: { run: RunEntry; row?: ResultRow }) {
  if (!row) return <span class="quiet">–</span>;
  const score = <Score cell={row} />;
  const known = run.tasks.some((task) => task.name === row.task);
  return known ? (
    <a href={address([run.name, row.task])} title={plain(row.metric)}>
      {score}
    </a>
  ) : (
    score
  );
}

/** The table of runs, a search in it, and the choice of runs to compare. */
function Runs({ report }: { report: Report }) {
  const [sought, seek] = useState("");
  const [chosen, set] = useState<ReadonlySet<number>>(new Set());
  const isCompared = report.view ? report.runs.filter((run) => !run.live).length > 1 : (report.compared?.length ?? 0) > 0;
  const choose = (run: RunEntry) => {
    const next = new Set(chosen);
    if (!next.delete(run.number)) next.add(run.number);
    set(next);
  };
  const names = report.runs.filter((run) => chosen.has(run.number)).map((run) => run.name);
  const isRight = names.length === 0 || (names.length >= 2 && names.length <= MOST);
  const open = () => isCompared && isRight && go(pageAddress("compare", new URLSearchParams(names.map((name) => ["run", name]))));
  const rows = report.runs.filter((run) => words(run).includes(sought.trim().toLowerCase()));
  useKeys({ j: () => step(1), k: () => step(-1), x: () => rowOf()?.querySelector("input")?.click(), c: open });
  return (
    <>
      {report.runs.length > 1 && (
        <div class="bar">
          <input
            id="search"
            type="search"
            placeholder="Find a run by model, task or state  ( / )"
            aria-label="Find a run by model, task or state"
            value={sought}
            onInput={(event) => seek(event.currentTarget.value)}
          />
          {isCompared && (
            <button class="button" onClick={open} disabled={!isRight} title="Choose runs with x, compare with c">
              {names.length ? `Compare ${names.length} ${names.length === 1 ? "run" : "runs"}` : "Compare"}
            </button>
          )}
          {isCompared && (
            <small role="status">
              {names.length === 0 ? `Choose two to five runs${report.runs.length > MOST ? "" : ", or compare all"}` : names.length === 1 ? "Choose one more" : names.length > MOST ? `Choose at most ${MOST}` : ""}
            </small>
          )}
        </div>
      )}
      <div class="run-table">
        <SortedTable rows={rows} columns={columnsOf(isCompared ? { chosen, choose } : { chosen }, report.runs)} label="Runs" rowClass={(run) => (chosen.has(run.number) ? "chosen" : "")} />
      </div>
      {!rows.length && <p class="empty">No run has “{plain(sought)}”.</p>}
    </>
  );
}

const rowOf = (): HTMLTableRowElement | null => document.activeElement?.closest<HTMLTableRowElement>("#runs tbody tr") ?? null;

/** Takes the focus to the link of the next run. */
function step(by: number): void {
  const links = [...document.querySelectorAll<HTMLAnchorElement>("#runs .run-link")];
  const at = links.findIndex((link) => link.closest("tr") === rowOf());
  links[at < 0 ? 0 : Math.max(0, Math.min(links.length - 1, at + by))]?.focus();
}

export function Home({ report }: { report: Report }) {
  const warnings = report.runs.flatMap((run) =>
    run.warnings.map((one) => ({ ...one, task: report.runs.length > 1 ? `${run.name}${one.task ? ` · ${one.task}` : ""}` : one.task })),
  );
  const samples = report.runs.reduce((sum, run) => sum + run.tasks.reduce((part, task) => part + task.samples, 0), 0);
  const limits = [
    report.options.chosen.length > 0 && `only samples by ${cut(plain(report.options.chosen.join(" ")), MOST_CHOSEN)}`,
    report.options.media === "none" && "no media",
    report.options.redact.length > 0 && `left out: ${report.options.redact.map(plain).join(", ")}`,
  ].filter(Boolean);
  return (
    <main>
      <h1>{report.runs.length === 1 ? "One run" : report.runs.length ? `${report.runs.length} runs` : "No run yet"}</h1>
      <p class="quiet wrapped">
        {count(samples)} samples, {report.view ? "in " : "written "}
        {report.view ? (
          <Text>{report.view.folder}</Text>
        ) : (
          `${new Date(report.written * 1000).toISOString().slice(0, 16).replace("T", " ")} UTC`
        )}
        {limits.length ? ` · ${limits.join(" · ")}` : ""}
      </p>
      {report.view?.problems.map((problem) => <Waiting key={problem} error={problem} />)}
      {!report.runs.length && <p>A run appears here when it begins.</p>}
      {report.runs.length === 1 && <Warnings warnings={warnings} />}
      {report.runs.length > 0 && (
        <>
          <Section title="Runs" id="runs">
            <Runs report={report} />
          </Section>
          {report.runs.length > 1 && warnings.length > 0 && (
            <Section title="Warnings">
              <Warnings warnings={warnings} most={4} />
            </Section>
          )}
          {(report.runs.length > 1 || report.runs.some((run) => headlines(run).length > 2)) && (
            <Section title="Scores by task">
              <Matrix report={report} />
            </Section>
          )}
        </>
      )}
    </main>
  );
}
