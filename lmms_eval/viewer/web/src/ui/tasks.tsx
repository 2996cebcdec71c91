// The tasks: search, choose, and what is known of each.
import { useEffect, useRef, useState } from "preact/hooks";

import { count, plain, Text } from "../text";
import { Waiting } from "../waiting";
import { ANY, api, type FoundTasks, type Problem, type TaskChoice, type TaskDetails, type TaskSearch } from "./api";
import { setOption, useDraft } from "./draft";
import { Missing } from "./models";
import { useAsked } from "./store";

const MOST = 60;
const MORE = 300;
const TYPING_MS = 120;
const AGAIN_MS = 1500;
const KINDS: [string, string][] = [["", "All kinds"], ["group", "Groups"], ["tag", "Tags"], ["task", "Tasks"]];
const MODALITIES = ["image", "video", "audio", "3d", "text"];
const NEEDS: [string, string][] = [["", "Any scoring"], ["none", "Scored here alone"], ["judge", "Scored by a judge"], ["server", "Scored by a server"]];
const EVERYTHING: TaskSearch = { word: "", kind: "", modality: "", need: "", source: ANY, most: MOST };

export function TaskPart({ problems }: { problems: Problem[] }) {
  const chosen = useDraft().tasks ?? [];
  const toggle = (name: string) =>
    setOption("tasks", chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name]);
  return (
    <>
      <Chosen chosen={chosen} toggle={toggle} />
      {chosen.length > 0 && problems.filter((one) => one.name === "tasks").map((one) => <p class="problem"><Text>{one.text}</Text></p>)}
      <TaskSearchBox chosen={chosen} toggle={toggle} />
    </>
  );
}

interface ChosenProps {
  chosen: string[];
  toggle: (name: string) => void;
}

function Chosen({ chosen, toggle }: ChosenProps) {
  const list = useRef<HTMLUListElement>(null);
  const known = useAsked(`chosen ${chosen.join("\n")}`, async () => (chosen.length ? (await api.tasks(chosen)).tasks : []));
  const kept = useRef<TaskChoice[]>([]);
  if (known.content) kept.current = known.content;
  if (!chosen.length) return <p class="quiet">Choose one or more tasks, groups or tags.</p>;
  const byName = new Map(kept.current.map((one) => [one.name, one]));
  const sizes = chosen.map((name) => byName.get(name)?.documents ?? null);
  const total = sizes.reduce<number>((sum, one) => sum + (one ?? 0), 0);
  const leave = (name: string, place: number) => {
    toggle(name);
    // The focus stays in the list: at the entry that takes the place of the one that is gone.
    setTimeout(() => list.current?.querySelectorAll("button")[Math.min(place, chosen.length - 2)]?.focus());
  };
  return (
    <>
      <ul class="chosen" aria-label="Chosen tasks" ref={list}>
        {chosen.map((name, place) => (
          <li key={name}>
            <b><Text>{name}</Text></b>
            <DataState name={name} isUnknown={Boolean(known.content) && !byName.has(name)} />
            <span class="number">{sizes[place] !== null && count(sizes[place])}</span>
            <button class="plain" onClick={() => leave(name, place)} aria-label={`Leave out ${plain(name)}`}>×</button>
          </li>
        ))}
      </ul>
      <p class="quiet note">
        {total
          ? `${sizes.every((one) => one !== null) ? "" : "At least "}${count(total)} documents in total, fewer with a limit.`
          : "The number of documents is known when the data are opened."}
      </p>
    </>
  );
}

/** Answers of the server about data and packages, by task: they cost it a process. */
const checked = new Map<string, Promise<string[]>>();

function missingOf(name: string): Promise<string[]> {
  const before = checked.get(name);
  if (before) return before;
  const asked = api.checkTask(name).then(({ missing }) => missing);
  asked.catch(() => checked.delete(name));
  checked.set(name, asked);
  return asked;
}

/** What is missing, in short, the most important first. */
const LACKING: [RegExp, string][] = [
  [/^data\b/, "data not downloaded"],
  [/^package/, "package missing"],
  [/^judge/, "no judge set"],
];

/** Whether the data and packages of a chosen task are on this machine. */
function DataState({ name, isUnknown }: { name: string; isUnknown: boolean }) {
  const [missing, set] = useState<string[] | undefined>();
  useEffect(() => {
    let current = true;
    if (!isUnknown && !/[*?[]/.test(name)) missingOf(name).then((found) => current && set(found), () => undefined);
    return () => void (current = false);
  }, [name, isUnknown]);
  if (isUnknown) return <span class="quiet">{/[*?[]/.test(name) ? "pattern" : ""}</span>;
  if (!missing) return <span class="quiet checking">checking data …</span>;
  if (!missing.length) return <span class="present">data ready</span>;
  return (
    <details class="lacking">
      <summary>{LACKING.find(([begin]) => missing.some((text) => begin.test(text)))?.[1] ?? "part missing"}</summary>
      <Missing texts={missing} />
    </details>
  );
}

function useSearch(wanted: TaskSearch): { found?: FoundTasks; error?: string } {
  const [state, set] = useState<{ found?: FoundTasks; error?: string }>({});
  const key = JSON.stringify(wanted);
  useEffect(() => {
    let current = true;
    let timer = 0;
    const ask = async () => {
      try {
        const found = await api.search(wanted);
        if (!current) return;
        set({ found });
        if (!found.is_complete) timer = window.setTimeout(ask, AGAIN_MS); // facts of groups come after the names
      } catch (error) {
        if (current) set(({ found }) => ({ found, error: (error as Error).message }));
      }
    };
    timer = window.setTimeout(ask, wanted.word ? TYPING_MS : 0);
    return () => {
      current = false;
      window.clearTimeout(timer);
    };
  }, [key]);
  return state;
}

function TaskSearchBox({ chosen, toggle }: ChosenProps) {
  const [wanted, want] = useState(EVERYTHING);
  const [open, show] = useState<string>();
  const { found, error } = useSearch(wanted);
  const set = (terms: Partial<TaskSearch>) => want({ ...wanted, most: MOST, ...terms });
  const select = (name: keyof TaskSearch, label: string, values: [string, string][]) => (
    <select aria-label={label} value={String(wanted[name])} onChange={(event) => set({ [name]: event.currentTarget.value })}>
      {values.map(([value, text]) => <option value={value}>{text}</option>)}
    </select>
  );
  return (
    <>
      <input
        type="search"
        class="wide"
        placeholder={found ? `Search ${count(found.total)} tasks, groups and tags` : "Search tasks, groups and tags"}
        aria-label="Search tasks"
        value={wanted.word}
        onInput={(event) => set({ word: event.currentTarget.value })}
      />
      <div class="bar filters">
        {select("kind", "Kind", KINDS)}
        {select("modality", "Modality", [["", "Any modality"], ...MODALITIES.map((one): [string, string] => [one, one])])}
        {select("need", "Scoring", NEEDS)}
        {found && found.sources.length > 0 &&
          select("source", "Source", [[ANY, "All sources"], ["", "This package"], ...found.sources.map((one): [string, string] => [one, `Pack ${plain(one)}`])])}
        <span class="quiet" role="status">{found && `${count(found.found)} found`}</span>
      </div>
      {!found && <Waiting error={error} />}
      {found && error && <p class="problem" role="alert"><Text>{error}</Text></p>}
      {found && (
        <div class="choices-box tall" role="group" aria-label="Tasks" tabIndex={0}>
          {found.tasks.map((one) => (
            <TaskRow key={`${one.kind} ${one.name}`} one={one} checked={chosen.includes(one.name)} toggle={toggle} open={open} show={show} />
          ))}
          {!found.found && <Nothing found={found} word={wanted.word} />}
          {found.found > found.tasks.length && (
            <button class="link" onClick={() => set({ most: found.tasks.length + MORE })}>
              and {count(found.found - found.tasks.length)} more
            </button>
          )}
        </div>
      )}
    </>
  );
}

const Nothing = ({ found, word }: { found: FoundTasks; word: string }) => (
  <p class="empty">
    {found.hint ? <Text>{found.hint}</Text> : word ? "No task, group or tag matches all words." : "No task, group or tag matches."}
  </p>
);

interface RowProps {
  one: TaskChoice;
  checked: boolean;
  toggle: (name: string) => void;
  open?: string;
  show: (name?: string) => void;
}

function TaskRow({ one, checked, toggle, open, show }: RowProps) {
  const isOpen = open === one.name;
  const facts = [
    one.kind !== "task" && `${one.kind}${one.size ? ` of ${count(one.size)}` : ""}`,
    one.pack && `pack ${plain(one.pack)}`,
    plain(withoutLinks(one.title)),
  ];
  return (
    <div class={`task-row ${checked ? "selected" : ""}`}>
      <label>
        <input type="checkbox" checked={checked} onChange={() => toggle(one.name)} />
        <span>
          <b>
            <Text>{one.name}</Text>
          </b>
          <small>
            <Text>{facts.filter(Boolean).join(" · ")}</Text>
          </small>
        </span>
      </label>
      <span class="tags">
        {one.modalities.filter((name) => name !== "text").map((name) => <span class="badge">{plain(name)}</span>)}
        {one.needs.map((name) => <span class="badge mild" title={`Scoring needs: ${plain(name)}`}>{plain(name)}</span>)}
      </span>
      <span class="number" title="documents">{one.documents !== null && count(one.documents)}</span>
      <button class="plain" aria-expanded={isOpen} aria-label={`About ${plain(one.name)}`} onClick={() => show(isOpen ? undefined : one.name)}>
        {isOpen ? "▾" : "▸"}
      </button>
      {isOpen && <About name={one.name} toggle={toggle} />}
    </div>
  );
}

/** A text of a card, with the words of its Markdown links alone. */
const withoutLinks = (text: string): string => text.replace(/\[([^\]]*)\]\([^)\s]*\)/g, "$1");

/** Members of a group that can be chosen at once; more of them are found by a search. */
const MOST_MEMBERS = 40;

function About({ name, toggle }: { name: string; toggle: (name: string) => void }) {
  const chosen = useDraft().tasks ?? [];
  const { content, error } = useAsked(`task ${name}`, () => api.task(name));
  if (!content) return <div class="about"><Waiting error={error} /></div>;
  const members = content.parts.map((part) => part.name).filter((one) => one !== name);
  return (
    <div class="about">
      {content.title && <p><Text>{withoutLinks(content.title)}</Text></p>}
      <Facts details={content} />
      <Missing texts={content.missing} />
      {members.length > 0 && (
        <div class="members" role="group" aria-label={`Tasks of ${plain(name)}`}>
          {members.slice(0, MOST_MEMBERS).map((one) => (
            <button class="chip" aria-pressed={chosen.includes(one)} onClick={() => toggle(one)}><Text>{one}</Text></button>
          ))}
          {members.length > MOST_MEMBERS && <small>and {count(members.length - MOST_MEMBERS)} more</small>}
        </div>
      )}
      <Check name={name} />
    </div>
  );
}

function Facts({ details }: { details: TaskDetails }) {
  const { parts } = details;
  const metrics = [...new Set(parts.flatMap((part) => part.metrics.map((one) => one.name)))];
  const data = [...new Set(parts.map((part) => [part.data_set, part.configuration, part.split].filter(Boolean).join(" · ")))];
  const facts: [string, string][] = [
    ["Documents", details.documents === null ? "not stated" : count(details.documents)],
    ["Data", data.slice(0, 4).join("; ") + (data.length > 4 ? `; and ${data.length - 4} more` : "")],
    ["Licence", details.licence.join("; ") || "not stated"],
    ["Download", details.download.join("; ")],
    ["Metrics", metrics.slice(0, 8).join(", ")],
    ["Needs", details.needs_text.join("; ")],
    ["Chance level", details.chance.join("; ")],
    ["Published", details.published.join("; ")],
    ["File", details.file],
  ];
  return (
    <dl class="facts">
      {facts.filter(([, text]) => text).map(([key, text]) => (
        <>
          <dt>{key}</dt>
          <dd><Text>{text}</Text></dd>
        </>
      ))}
    </dl>
  );
}

/** Tries the data and packages of a task in a process of its own: what `lmms-eval tasks describe` says is missing. */
function Check({ name }: { name: string }) {
  const [state, set] = useState<{ busy?: boolean; missing?: string[]; error?: string }>({});
  const check = async () => {
    set({ busy: true });
    checked.delete(name);
    try {
      set({ missing: await missingOf(name) });
    } catch (error) {
      set({ error: (error as Error).message });
    }
  };
  return (
    <div class="bar">
      <button onClick={check} disabled={state.busy}>{state.busy ? "Checking …" : "What is missing on this machine?"}</button>
      {state.error && <span class="problem" role="alert"><Text>{state.error}</Text></span>}
      {state.missing?.length === 0 && <span role="status">Nothing: data and packages are ready.</span>}
      {state.missing && <Missing texts={state.missing} />}
    </div>
  );
}
