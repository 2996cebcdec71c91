// The tasks: search, choose, and what is known of each.
import { useMemo, useState } from "preact/hooks";

import { Waiting } from "../waiting";
import { count, plain, Text } from "../text";
import { api, type GroupFacts, type Problem, type TaskChoice, type TaskDetails } from "./api";
import { setOption, useDraft } from "./draft";
import { Missing } from "./models";
import { useAsked } from "./store";

const MOST = 120;
const KINDS: [string, string][] = [["", "All"], ["group", "Groups"], ["tag", "Tags"], ["task", "Tasks"]];

export function TaskPart({ problems }: { problems: Problem[] }) {
  const { content, error } = useAsked("tasks", api.tasks);
  const groups = useAsked("groups", api.groups).content?.groups;
  const chosen = useDraft().tasks ?? [];
  const [open, show] = useState<string>();
  const tasks = useMemo(() => withFacts(content?.tasks ?? [], groups ?? []), [content, groups]);
  if (!content) return <Waiting error={error} />;
  const byName = new Map(tasks.map((one) => [one.name, one]));
  const toggle = (name: string) =>
    setOption("tasks", chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name]);
  return (
    <>
      <Chosen chosen={chosen} byName={byName} toggle={toggle} />
      {chosen.length > 0 && problems.filter((one) => one.name === "tasks").map((one) => <p class="problem"><Text>{one.text}</Text></p>)}
      <TaskList tasks={tasks} chosen={chosen} toggle={toggle} open={open} show={show} />
    </>
  );
}

/** Facts of groups come after the names. */
function withFacts(tasks: TaskChoice[], groups: GroupFacts[]): TaskChoice[] {
  const facts = new Map(groups.map((one) => [one.name, one]));
  return tasks.map((one) => (one.kind === "task" ? one : { ...one, ...facts.get(one.name) }));
}

interface ChosenProps {
  chosen: string[];
  byName: Map<string, TaskChoice>;
  toggle: (name: string) => void;
}

function Chosen({ chosen, byName, toggle }: ChosenProps) {
  if (!chosen.length) return <p class="quiet">Choose one or more tasks, groups or tags.</p>;
  const sizes = chosen.map((name) => byName.get(name)?.documents ?? null);
  const total = sizes.reduce<number>((sum, one) => sum + (one ?? 0), 0);
  const known = sizes.every((one) => one !== null);
  return (
    <>
      <ul class="chips" aria-label="Chosen tasks">
        {chosen.map((name) => (
          <li>
            <button class="chip" onClick={() => toggle(name)} aria-label={`Leave out ${plain(name)}`}>
              <Text>{name}</Text>
              {!byName.has(name) && <span class="problem"> unknown</span>}
              <span aria-hidden="true"> ×</span>
            </button>
          </li>
        ))}
      </ul>
      <p class="quiet">
        {total ? `${known ? "" : "at least "}${count(total)} documents, fewer with a limit` : "The number of documents is not known before the data are opened."}
      </p>
    </>
  );
}

interface ListProps {
  tasks: TaskChoice[];
  chosen: string[];
  toggle: (name: string) => void;
  open?: string;
  show: (name?: string) => void;
}

function TaskList({ tasks, chosen, toggle, open, show }: ListProps) {
  const [word, search] = useState("");
  const [kind, only] = useState("");
  const [modality, sense] = useState("");
  const [all, showAll] = useState(false);
  const modalities = [...new Set(tasks.flatMap((one) => one.modalities))];
  const found = ranked(
    tasks.filter((one) => (!kind || one.kind === kind) && (!modality || one.modalities.includes(modality)) && fits(one, word)),
    word,
  );
  const shown = all ? found : found.slice(0, MOST);
  return (
    <>
      <div class="bar">
        <input
          type="search"
          placeholder={`Search ${count(tasks.length)} tasks, groups and tags`}
          aria-label="Search tasks"
          value={word}
          onInput={(event) => search(event.currentTarget.value)}
        />
        <select aria-label="Kind" value={kind} onChange={(event) => only(event.currentTarget.value)}>
          {KINDS.map(([value, text]) => <option value={value}>{text}</option>)}
        </select>
        <select aria-label="Modality" value={modality} onChange={(event) => sense(event.currentTarget.value)}>
          <option value="">Any modality</option>
          {modalities.map((one) => <option value={one}>{plain(one)}</option>)}
        </select>
      </div>
      <div class="choices-box tall" role="group" aria-label="Tasks" tabIndex={0}>
        {shown.map((one) => (
          <TaskRow key={`${one.kind} ${one.name}`} one={one} checked={chosen.includes(one.name)} toggle={toggle} open={open} show={show} />
        ))}
        {!found.length && <p class="empty">Nothing fits.</p>}
        {found.length > shown.length && (
          <button class="link" onClick={() => showAll(true)}>
            and {count(found.length - shown.length)} more
          </button>
        )}
      </div>
    </>
  );
}

function fits(one: TaskChoice, word: string): boolean {
  const wanted = word.toLowerCase().split(/\s+/).filter(Boolean);
  const text = [one.name, one.title, ...one.tags].join(" ").toLowerCase();
  return wanted.every((part) => text.includes(part));
}

/** Names that begin with the word come first, then those that hold it. */
function ranked(tasks: TaskChoice[], word: string): TaskChoice[] {
  const wanted = word.trim().toLowerCase();
  if (!wanted) return tasks;
  const place = ({ name }: TaskChoice) => (name.toLowerCase().startsWith(wanted) ? 0 : name.toLowerCase().includes(wanted) ? 1 : 2);
  return [...tasks].sort((a, b) => place(a) - place(b));
}

interface RowProps {
  one: TaskChoice;
  checked: boolean;
  toggle: (name: string) => void;
  open?: string;
  show: (name?: string) => void;
}

function TaskRow({ one, checked, toggle, open, show }: RowProps) {
  const isOpen = open === one.name;
  const size = one.documents !== null ? count(one.documents) : "";
  return (
    <div class={`task-row ${checked ? "selected" : ""}`}>
      <label>
        <input type="checkbox" checked={checked} onChange={() => toggle(one.name)} />
        <span>
          <b>
            <Text>{one.name}</Text>
          </b>
          <small>
            {one.kind !== "task" && `${one.kind}${one.size ? ` of ${count(one.size)}` : ""}${one.title ? " · " : ""}`}
            <Text>{one.title}</Text>
          </small>
        </span>
      </label>
      <span class="tags">
        {one.modalities.filter((name) => name !== "text").map((name) => <span class="badge">{plain(name)}</span>)}
        {one.needs.map((name) => <span class="badge mild">{plain(name)}</span>)}
      </span>
      <span class="number" title="documents">{size}</span>
      <button class="plain" aria-expanded={isOpen} aria-label={`About ${plain(one.name)}`} onClick={() => show(isOpen ? undefined : one.name)}>
        {isOpen ? "▾" : "▸"}
      </button>
      {isOpen && <About name={one.name} />}
    </div>
  );
}

function About({ name }: { name: string }) {
  const { content, error } = useAsked(`task ${name}`, () => api.task(name));
  if (!content) return <div class="about"><Waiting error={error} /></div>;
  const metrics = [...new Set(content.parts.flatMap((part) => part.metrics.map((one) => one.name)))];
  const data = [...new Set(content.parts.map((part) => [part.data_set, part.configuration, part.split].filter(Boolean).join(" · ")))];
  const facts: [string, string][] = [
    ["tasks", content.parts.length > 1 ? content.parts.map((part) => part.name).slice(0, 12).join(", ") + (content.parts.length > 12 ? `, and ${content.parts.length - 12} more` : "") : ""],
    ["documents", content.documents === null ? "not stated" : count(content.documents)],
    ["data", data.slice(0, 4).join("; ")],
    ["licence", content.licence.join("; ") || "not stated"],
    ["download", content.download.join("; ")],
    ["metrics", metrics.slice(0, 8).join(", ")],
    ["needs", content.needs_text.join("; ")],
    ["chance", content.chance.join("; ")],
    ["published", content.published.join("; ")],
    ["file", content.file],
  ];
  return (
    <div class="about">
      <p><Text>{content.title}</Text></p>
      <dl class="facts">
        {facts.filter(([, text]) => text).map(([key, text]) => (
          <>
            <dt>{key}</dt>
            <dd><Text>{text}</Text></dd>
          </>
        ))}
      </dl>
      <Missing texts={content.missing} />
      <Check details={content} />
    </div>
  );
}

/** Tries the data and packages of a task in a process of its own: what `lmms-eval tasks describe` says is missing. */
function Check({ details }: { details: TaskDetails }) {
  const [state, set] = useState<{ busy?: boolean; missing?: string[]; error?: string }>({});
  const check = async () => {
    set({ busy: true });
    try {
      set({ missing: (await api.checkTask(details.name)).missing });
    } catch (error) {
      set({ error: (error as Error).message });
    }
  };
  return (
    <div class="bar">
      <button onClick={check} disabled={state.busy}>{state.busy ? "Checking …" : "What is missing on this machine?"}</button>
      {state.error && <span class="problem"><Text>{state.error}</Text></span>}
      {state.missing?.length === 0 && <span role="status">nothing: data and packages are here</span>}
      {state.missing && <Missing texts={state.missing} />}
    </div>
  );
}
