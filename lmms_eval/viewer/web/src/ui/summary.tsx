// Next to the choices: the command and the file that do the same, what is wrong, and the start.
import { useEffect, useRef, useState } from "preact/hooks";

import { Text } from "../text";
import { api, type Preview, type Problem, type Request } from "./api";
import { Copy, save } from "./copy";
import { setDraft, useDraft } from "./draft";
import { lost, submit } from "./submit";

const TYPING_MS = 250;
const NOTHING: Preview = { command: "", yaml: "", problems: [] };

/** What the server makes of the draft; the newest answer counts. */
export function usePreview(): { preview: Preview; error?: string } {
  const draft = useDraft();
  const [state, set] = useState<{ preview: Preview; error?: string }>({ preview: NOTHING });
  useEffect(() => {
    let current = true;
    const timer = setTimeout(async () => {
      try {
        const preview = await api.preview(draft);
        if (current) set({ preview });
      } catch (error) {
        if (current) set(({ preview }) => ({ preview, error: (error as Error).message }));
      }
    }, TYPING_MS);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [draft]);
  return state;
}

interface SummaryProps {
  preview: Preview;
  error?: string;
  /** Learns why a start was refused. */
  failed: (error: unknown) => void;
}

export function Summary({ preview, error, failed }: SummaryProps) {
  const [shown, show] = useState<"command" | "yaml">("command");
  const draft = useDraft();
  return (
    <aside class="summary" aria-label="Summary">
      <div class="forms" role="group" aria-label="Form">
        <button aria-pressed={shown === "command"} onClick={() => show("command")}>Command</button>
        <button aria-pressed={shown === "yaml"} onClick={() => show("yaml")}>YAML</button>
        <Copy text={shown === "command" ? preview.command : preview.yaml} name={shown === "command" ? "the command" : "the YAML"} />
      </div>
      <pre class="text" tabIndex={0} aria-label={shown === "command" ? "Command" : "YAML"}>
        <Text>{preview[shown]}</Text>
      </pre>
      <Import saved={preview.yaml} />
      {error && <p class="problem" role="alert"><Text>{error}</Text></p>}
      <Problems problems={isBegun(draft) ? preview.problems : []} />
      <Start draft={draft} isReady={isBegun(draft) && !preview.problems.length && !error} failed={failed} />
    </aside>
  );
}

const isBegun = (draft: Request): boolean => Boolean(draft.model && draft.tasks?.length);

function Problems({ problems }: { problems: Problem[] }) {
  if (!problems.length) return null;
  return (
    <ul class="warnings" aria-label="Problems">
      {problems.map((one) => (
        <li class="grave">
          {one.line !== null && <b>line {one.line}: </b>}
          <Text>{one.text}</Text>
        </li>
      ))}
    </ul>
  );
}

function Import({ saved }: { saved: string }) {
  const [state, set] = useState<{ problems: Problem[]; told: string }>({ problems: [], told: "" });
  const field = useRef<HTMLInputElement>(null);
  const read = async () => {
    const file = field.current?.files?.[0];
    if (!file) return;
    try {
      const { request, problems } = await api.importYaml(await file.text());
      if (Object.keys(request).length) setDraft(request);
      set({ problems, told: problems.length ? "" : `read ${file.name}` });
    } catch (error) {
      set({ problems: [{ name: "", text: (error as Error).message, line: null }], told: "" });
    }
    if (field.current) field.current.value = "";
  };
  return (
    <>
      <div class="bar">
        <button onClick={() => field.current?.click()}>Import YAML</button>
        <input ref={field} type="file" accept=".yaml,.yml" class="unseen" aria-label="YAML file" tabIndex={-1} onChange={read} />
        <button onClick={() => save(saved, "run.yaml")} disabled={!saved}>Save YAML</button>
        <button class="link" onClick={() => setDraft({})}>Clear all</button>
      </div>
      {state.told && <p role="status" class="quiet"><Text>{state.told}</Text></p>}
      <Problems problems={state.problems} />
    </>
  );
}

function Start({ draft, isReady, failed }: { draft: Request; isReady: boolean; failed: (error: unknown) => void }) {
  const [state, set] = useState<{ busy?: boolean; error?: string; job?: string }>({});
  useEffect(() => {
    lost().then(
      (found) => found && set(found.job ? { job: found.job } : { error: "The last start did not reach the server. Start sends it again." }),
      () => undefined,
    );
  }, []);
  const start = async () => {
    set({ busy: true });
    try {
      const job = await submit(draft);
      location.hash = `#/job/${job}`;
    } catch (error) {
      set({ error: (error as Error).message });
      failed(error);
    }
  };
  return (
    <div class="start">
      <button class="primary" onClick={start} disabled={!isReady || state.busy}>
        {state.busy ? "Starting …" : "Start evaluation"}
      </button>
      {!isBegun(draft) && <small>Choose a model and at least one task.</small>}
      {state.job && (
        <p role="status">
          The last start was received: <a href={`#/job/${state.job}`}>see the evaluation</a>.
        </p>
      )}
      {state.error && <p class="problem" role="alert"><Text>{state.error}</Text></p>}
    </div>
  );
}
