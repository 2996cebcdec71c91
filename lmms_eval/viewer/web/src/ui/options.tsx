// Options of the run: the usual ones in sight, the others by group.
import { useState } from "preact/hooks";

import { plain } from "../text";
import type { OptionChoice, Problem } from "./api";
import { setOption, useDraft } from "./draft";
import { Field } from "./fields";

export function OptionPart({ options, problems }: { options: OptionChoice[]; problems: Problem[] }) {
  const draft = useDraft();
  const [word, search] = useState("");
  const wanted = word.trim().toLowerCase();
  const fits = (one: OptionChoice) => !wanted || one.name.includes(wanted) || one.text.toLowerCase().includes(wanted);
  const groups = [...new Set(options.map((one) => one.group))];
  const field = (one: OptionChoice) => (
    <Field
      {...one}
      key={one.name}
      placeholder={one.default === null || one.default === false ? one.metavar : undefined}
      value={draft[one.name]}
      change={(value) => setOption(one.name, value)}
      problems={problems}
    />
  );
  return (
    <>
      <div class="entries">{options.filter((one) => one.is_usual).map(field)}</div>
      <input
        type="search"
        class="wide"
        placeholder={`Search all ${options.length} options`}
        aria-label="Search options"
        value={word}
        onInput={(event) => search(event.currentTarget.value)}
      />
      {groups.map((group) => {
        const members = options.filter((one) => one.group === group && !one.is_usual && fits(one));
        const given = members.filter((one) => draft[one.name] !== undefined).length;
        if (!members.length) return null;
        return (
          <details open={wanted !== "" || given > 0} key={group}>
            <summary>
              {plain(group)} <span class="quiet">({members.length}{given > 0 && `, ${given} given`})</span>
            </summary>
            <div class="entries">{members.map(field)}</div>
          </details>
        );
      })}
    </>
  );
}
