// The model: its name, and its arguments with their meanings.
import { useState } from "preact/hooks";

import { Waiting } from "../waiting";
import { plain, Text } from "../text";
import { api, type Argument, type ModelChoice, type Problem } from "./api";
import { draft, setArgument, setDraft, useDraft } from "./draft";
import { Field } from "./fields";
import { useAsked } from "./store";

export function ModelPart({ models, problems }: { models: ModelChoice[]; problems: Problem[] }) {
  const { model } = useDraft();
  const [choosing, choose] = useState(false);
  const known = models.find((one) => one.name === model || (model !== undefined && one.aliases.includes(model)));
  if (!model || choosing)
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
        <button onClick={() => choose(true)}>Change</button>
      </div>
      {problems.filter((one) => one.name === "model").map((one) => <p class="problem"><Text>{one.text}</Text></p>)}
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
  const fits = (one: ModelChoice) =>
    [one.name, one.text, ...one.aliases].some((text) => text.toLowerCase().includes(word.toLowerCase()));
  const found = models.filter(fits);
  const sorts = [...new Set(models.map((one) => one.sort))].filter((sort) => found.some((one) => one.sort === sort));
  const pick = (one: ModelChoice) => {
    if (one.name !== chosen) setDraft({ ...draft(), model: one.name, model_args: {} });
    done();
  };
  return (
    <>
      <input
        type="search"
        class="wide"
        placeholder={`Search ${models.length} models`}
        aria-label="Search models"
        value={word}
        onInput={(event) => search(event.currentTarget.value)}
      />
      <div class="choices-box" role="group" aria-label="Models" tabIndex={0}>
        {sorts.map((sort) => (
          <>
            <h3>{plain(sort)}</h3>
            {found.filter((one) => one.sort === sort).map((one) => <ModelRow one={one} pick={() => pick(one)} word={word} />)}
          </>
        ))}
        {!found.length && <p class="empty">No model has this in its name.</p>}
      </div>
    </>
  );
}

function ModelRow({ one, pick, word }: { one: ModelChoice; pick: () => void; word: string }) {
  const alias = word && !one.name.includes(word) ? one.aliases.find((name) => name.includes(word)) : undefined;
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
        <p class="quiet note">Keys are not typed here: set their variables where the server is started.</p>
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
            of="argument" name={one} kind="text" default={null} choices={[]} text="given to the back end as it is" value={value}
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
