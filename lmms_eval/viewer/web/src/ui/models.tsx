// The model: its name, and its arguments with their meanings.
import { useEffect, useRef, useState } from "preact/hooks";

import { Waiting } from "../waiting";
import { plain, Text } from "../text";
import { api, type Argument, type ModelChoice, type Problem, type Values } from "./api";
import { draft, setArgument, setDraft, useDraft } from "./draft";
import { Field } from "./fields";
import { useAsked } from "./store";

export function ModelPart({ models, problems }: { models: ModelChoice[]; problems: Problem[] }) {
  const { model } = useDraft();
  const [choosing, choose] = useState(false);
  const change = useRef<HTMLButtonElement>(null);
  const isListed = !model || choosing;
  const wasListed = useRef(isListed);
  useEffect(() => {
    // What had the focus is gone: it moves to what comes next.
    if (wasListed.current && !isListed) change.current?.focus();
    wasListed.current = isListed;
  }, [isListed]);
  const known = models.find((one) => one.name === model || (model !== undefined && one.aliases.includes(model)));
  const own = problems.filter((one) => one.name === "model").map((one) => <p class="problem"><Text>{one.text}</Text></p>);
  if (isListed)
    return <ModelList models={models} done={() => choose(false)} chosen={model} />;
  return (
    <>
      <div class="picked">
        <div>
          <b>
            <Text>{model}</Text>
          </b>
          <small>
            <Text>{known?.text ?? "not in the list of models"}</Text>
          </small>
        </div>
        <button ref={change} onClick={() => choose(true)}>Change</button>
      </div>
      {own}
      <Missing texts={known?.missing ?? []} />
      <Arguments model={model} problems={problems} />
    </>
  );
}

export function Missing({ texts }: { texts: string[] }) {
  if (!texts.length) return null;
  return (
    <ul class="warnings" aria-label="Missing on this machine">
      {texts.map((text) => (
        <li class="mild">
          <Text>{text}</Text>
        </li>
      ))}
    </ul>
  );
}

function ModelList({ models, done, chosen }: { models: ModelChoice[]; done: () => void; chosen?: string }) {
  const [word, search] = useState("");
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (chosen) field.current?.focus();
  }, []);
  const fits = (one: ModelChoice) =>
    [one.name, one.text, ...one.aliases].some((text) => text.toLowerCase().includes(word.trim().toLowerCase()));
  const found = models.filter(fits);
  const sorts = [...new Set(models.map((one) => one.sort))].filter((sort) => found.some((one) => one.sort === sort));
  const pick = (name: string, model_args: Values = {}) => {
    if (name !== chosen || Object.keys(model_args).length) setDraft({ ...draft(), model: name, model_args });
    done();
  };
  return (
    <>
      <div class="bar">
        <input
          type="search"
          class="wide"
          ref={field}
          placeholder={`Search ${models.length} models by name, alias or checkpoint`}
          aria-label="Search models"
          value={word}
          onInput={(event) => search(event.currentTarget.value)}
        />
        {chosen && <button onClick={done}>Keep {plain(chosen)}</button>}
      </div>
      <div class="choices-box" role="group" aria-label="Models" tabIndex={0}>
        {sorts.map((sort) => (
          <>
            <h3>{plain(sort)}</h3>
            {found.filter((one) => one.sort === sort).map((one) => <ModelRow key={one.name} one={one} pick={() => pick(one.name)} word={word} />)}
          </>
        ))}
        {!found.length && <Checkpoint name={word.trim()} pick={pick} />}
      </div>
    </>
  );
}

/** A name that is no model's may be that of a checkpoint or of a model that a service offers. */
function Checkpoint({ name, pick }: { name: string; pick: (model: string, model_args: Values) => void }) {
  return (
    <div class="empty">
      <p>No model has this name. Is it a checkpoint, or a model of a service?</p>
      <div class="bar">
        <button onClick={() => pick("hf", { pretrained: name })}>hf with pretrained={plain(name)}</button>
        <button onClick={() => pick("openai", { model: name })}>openai with model={plain(name)}</button>
      </div>
    </div>
  );
}

function ModelRow({ one, pick, word }: { one: ModelChoice; pick: () => void; word: string }) {
  const wanted = word.trim().toLowerCase();
  const alias = wanted && !one.name.toLowerCase().includes(wanted) ? one.aliases.find((name) => name.toLowerCase().includes(wanted)) : undefined;
  return (
    <button class="choice-row" onClick={pick}>
      <b>
        <Text>{one.name}</Text>
        {alias && <small> also <Text>{alias}</Text></small>}
      </b>
      <small>
        <Text>{one.text}</Text>
      </small>
      {one.missing.length > 0 && (
        <span class="badge mild" title={plain(one.missing.join("; "))}>
          {one.missing.some((text) => text.startsWith("package")) ? "package missing" : "key missing"}
        </span>
      )}
    </button>
  );
}

function Arguments({ model, problems }: { model: string; problems: Problem[] }) {
  const { content, error } = useAsked(`model ${model}`, () => api.model(model));
  const given = useDraft().model_args ?? {};
  if (!content) return <Waiting error={error} />;
  const offered = content.arguments.filter((one) => !one.is_secret);
  const known = new Set(offered.flatMap((one) => [one.name, ...one.other_names]));
  const first = offered.filter((one) => one.is_first || one.is_required);
  const rest = offered.filter((one) => !first.includes(one));
  const field = (one: Argument) => (
    <Field
      {...one}
      of="argument"
      key={one.name}
      required={one.is_required && content.fixed[one.name] === undefined}
      text={one.meaning}
      placeholder={content.fixed[one.name] === undefined ? undefined : String(content.fixed[one.name])}
      value={given[one.name]}
      change={(value) => setArgument(one.name, value)}
      problems={[]}
    />
  );
  return (
    <>
      <div class="entries">{first.map(field)}</div>
      {rest.length > 0 && (
        <details>
          <summary>More arguments ({rest.length})</summary>
          <div class="entries">{rest.map(field)}</div>
        </details>
      )}
      <OtherArguments known={known} />
      {problems.filter((one) => one.name === "model_args").map((one) => <p class="problem"><Text>{one.text}</Text></p>)}
      {content.arguments.some((one) => one.is_secret) && (
        <p class="quiet note">Set keys in the environment that starts the server; they are not entered here.</p>
      )}
    </>
  );
}

/** Arguments that came from a file and are not in the list: engines take any. */
function OtherArguments({ known }: { known: Set<string> }) {
  const given = Object.entries(useDraft().model_args ?? {}).filter(([name]) => !known.has(name));
  const [name, type] = useState("");
  const add = () => {
    if (name.trim()) setArgument(name.trim(), "");
    type("");
  };
  return (
    <details open={given.length > 0}>
      <summary>Arguments that are not listed</summary>
      <div class="entries">
        {given.map(([one, value]) => (
          <Field
            of="argument" name={one} kind="text" default={null} choices={[]} text="passed to the back end unchanged" value={value}
            change={(next) => setArgument(one, next)} problems={[]}
          />
        ))}
      </div>
      <div class="bar">
        <input aria-label="Name of an argument" placeholder="name" value={name} onInput={(event) => type(event.currentTarget.value)} />
        <button onClick={add}>Add</button>
      </div>
    </details>
  );
}
