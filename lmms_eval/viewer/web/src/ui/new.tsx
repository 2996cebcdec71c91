// A new evaluation: model, tasks, options, and next to them what they come to.
import { useState } from "preact/hooks";

import { Text } from "../text";
import { Waiting } from "../waiting";
import { api, Refusal, type Offer, type Problem, type Request } from "./api";
import { setDraft, useDraft } from "./draft";
import { ModelPart } from "./models";
import { OptionPart } from "./options";
import { useAsked } from "./store";
import { submit } from "./submit";
import { Summary, usePreview } from "./summary";
import { TaskPart } from "./tasks";

export function NewPage() {
  const { content, error } = useAsked("offer", api.offer);
  const { preview, error: unread } = usePreview();
  const [refused, refuse] = useState<{ draft: Request; problem: Problem }>();
  const draft = useDraft();
  if (!content) return <><h1>New evaluation</h1><Waiting error={error} /></>;
  // What the server refused counts until something is changed.
  const problems = refused?.draft === draft ? [...preview.problems, refused.problem] : preview.problems;
  const failed = (error: unknown) => {
    const problem = error instanceof Refusal && error.status < 500 ? problemOf(error.message, content) : undefined;
    if (problem) refuse({ draft, problem });
  };
  return (
    <>
      <h1>New evaluation</h1>
      {!draft.model && !draft.tasks?.length && <First first={content.first} />}
      <div class="split">
        <div>
          <section class="step" aria-label="Model">
            <h2><span>1</span> Model</h2>
            <ModelPart models={content.models} problems={problems} />
          </section>
          <section class="step" aria-label="Tasks">
            <h2><span>2</span> Tasks</h2>
            <TaskPart problems={problems} />
          </section>
          <section class="step" aria-label="Options">
            <h2><span>3</span> Options</h2>
            <OptionPart options={content.options} problems={problems} />
          </section>
        </div>
        <Summary preview={preview} error={unread} failed={failed} />
      </div>
    </>
  );
}

/** The field that a refusal is about: its text begins with the name. */
function problemOf(text: string, offer: Offer): Problem | undefined {
  const name = /^(?:--)?(\w{1,60})\b/.exec(text)?.[1] ?? "";
  const isField = ["model", "model_args", "tasks"].includes(name) || offer.options.some((one) => one.name === name);
  return isField ? { name, text, line: null } : undefined;
}

/** A first evaluation for those who have chosen nothing yet. */
function First({ first }: { first: Offer["first"] }) {
  const [state, set] = useState<{ busy?: boolean; error?: string }>({});
  const start = async () => {
    set({ busy: true });
    try {
      location.hash = `#/job/${await submit(first.request)}`;
    } catch (error) {
      set({ error: (error as Error).message });
    }
  };
  return (
    <section class="first" aria-label="First evaluation">
      <div>
        <b>First evaluation</b>
        <p><Text>{first.text}</Text></p>
        {state.error && <p class="problem" role="alert"><Text>{state.error}</Text></p>}
      </div>
      <div class="bar">
        <button class="accent" onClick={start} disabled={state.busy}>{state.busy ? "Starting …" : "Start it"}</button>
        <button onClick={() => setDraft(first.request)}>Fill in the form</button>
      </div>
    </section>
  );
}
