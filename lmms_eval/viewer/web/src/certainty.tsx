// How certain a run's numbers are, task by task: the parts that lmms_eval/viewer/certainty.py makes, all in one form.
import { useState } from "preact/hooks";

import { Tasks } from "./breakdowns";
import { Section, SortedTable, type Column } from "./common";
import { number, Text } from "./text";
import type { CertaintyNumber, CertaintyPart, CertaintyShare, RunDetails } from "./types";

export function Certainty({ details }: { details: RunDetails }) {
  const tasks = Object.keys(details.certainty);
  const [name, choose] = useState(tasks[0] ?? "");
  if (!tasks.length) return null;
  return (
    <Section title="Certainty" id="certainty">
      <Tasks names={tasks} now={name} choose={choose} />
      {(details.certainty[name] ?? []).map((part) => (
        <Block key={part.title} part={part} />
      ))}
    </Section>
  );
}

function Block({ part }: { part: CertaintyPart }) {
  return (
    <div class="certain">
      <h3>{part.title}</h3>
      <p>
        <Text>{part.sentence}</Text>
      </p>
      {part.shares.length > 0 && <Shares shares={part.shares} />}
      {part.numbers.length > 0 && <SortedTable rows={part.numbers} columns={columns()} label={part.title} />}
      {part.notes.map((note) => (
        <p class="quiet">
          <Text>{note}</Text>
        </p>
      ))}
    </div>
  );
}

/** One bar of all pieces, and the name of each below it. */
function Shares({ shares }: { shares: CertaintyShare[] }) {
  const whole = shares.reduce((sum, one) => sum + one.value, 0);
  if (!(whole > 0)) return null;
  return <p>{shares.map((one) => `${one.name} ${Math.round((100 * one.value) / whole)} %`).join(", ")}</p>;
}

const columns = (): Column<CertaintyNumber>[] => [
  { name: "Number", value: (one) => one.name },
  { name: "Value", class: "number", value: (one) => one.value, cell: (one) => number(one.value) },
  {
    name: "95 % interval",
    class: "number",
    value: (one) => one.low,
    cell: (one) => (one.low === null ? "" : `${number(one.low)} – ${number(one.high)}`),
  },
  { name: "About", value: (one) => one.about },
  { name: "Method", class: "words", value: (one) => one.note },
];
