// What a run finds on the server's machine, as labelled values.
import { useState } from "preact/hooks";

import { plain, Text } from "../text";
import { Waiting } from "../waiting";
import { api, type Machine } from "./api";
import { Copy } from "./copy";
import { when } from "./state";
import { useAsked } from "./store";

/** What is looked for first comes first. */
const ORDER = ["Accelerators", "Machine", "Keys", "Software", "Optional parts", "Scoring data", "Sandbox"];
const NOTES: Record<string, string> = {
  Keys: "Set keys in the environment that starts the server. Key values are never shown.",
  Sandbox: "Confines programs that models write.",
};

export function MachinePage() {
  const [isFresh, refresh] = useState(false);
  const { content, error, again, isAsking } = useAsked("machine", () => api.machine(isFresh));
  const look = () => {
    refresh(true);
    again();
  };
  return (
    <>
      <div class="title-line">
        <h1>This machine</h1>
        {content && (
          <button onClick={look} disabled={isAsking}>
            {isAsking ? "Checking …" : "Refresh"}
          </button>
        )}
      </div>
      <p class="quiet">What an evaluation finds here, as reported by <code>lmms-eval doctor</code>{content && ` on ${when(content.checked_at)}`}.</p>
      {!content && <Waiting error={error} />}
      {content && error && <p class="problem" role="alert"><Text>{error}</Text></p>}
      {content && <Sections machine={content} />}
    </>
  );
}

function Sections({ machine }: { machine: Machine }) {
  const place = (title: string) => (ORDER.includes(title) ? ORDER.indexOf(title) : ORDER.length);
  const titles = Object.keys(machine.sections).sort((a, b) => place(a) - place(b));
  return (
    <>
      <dl class="values server">
        <dt>GPUs for evaluations</dt>
        <dd>{machine.gpus.length ? <Text>{machine.gpus.join(", ")}</Text> : <span class="quiet">none</span>}</dd>
        <dt>Folder of this server</dt>
        <dd>
          <Text>{machine.folder}</Text>
        </dd>
      </dl>
      <div class="sections">
        {titles.map((title) => (
          <section class="values-box" aria-label={plain(title)} key={title}>
            <h2>
              <Text>{title}</Text>
            </h2>
            {NOTES[title] && <p class="quiet note">{NOTES[title]}</p>}
            <dl class="values">
              {(machine.sections[title] ?? []).map((fact) => (
                <>
                  <dt>
                    <Text>{fact.name || "Device"}</Text>
                  </dt>
                  <dd>
                    <Value value={fact.value.replaceAll("`", "")} isPresent={fact.is_present} />
                  </dd>
                </>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </>
  );
}

/** A value; of what is absent also the command that gets it. */
function Value({ value, isPresent }: { value: string; isPresent: boolean | null }) {
  const [, what, command] = /^(missing [^]*?): (pip install [^]*)$/.exec(value) ?? [];
  if (what && command)
    return (
      <>
        <span class="absent">
          <Text>{what}</Text>
        </span>
        <span class="command">
          <code>
            <Text>{command}</Text>
          </code>
          <Copy text={command} name={plain(command)} />
        </span>
      </>
    );
  return (
    <span class={isPresent === false ? "absent" : value === "present" ? "present" : ""}>
      <Text>{value}</Text>
    </span>
  );
}
