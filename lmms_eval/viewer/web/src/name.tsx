// Names: long ones without their middle, and runs of a comparison by a letter and a short name.
import { createContext } from "preact";
import { useContext, useMemo } from "preact/hooks";

import { plain, Text } from "./text";
import type { RunEntry } from "./types";

/** `ending`: characters of the end that always stand there. What it stands in is labelled with the whole name. */
export function Name({ children, ending = 20 }: { children: string; ending?: number }) {
  const characters = [...children]; // never half of one
  const end = Math.min(ending, Math.floor(characters.length / 2));
  return (
    <span class="name" title={plain(children)} style={{ "--ending": `${end}ch` }}>
      <span>
        <Text>{characters.slice(0, characters.length - end).join("")}</Text>
      </span>
      <span>
        <Text>{characters.slice(characters.length - end).join("")}</Text>
      </span>
    </span>
  );
}

/** Names without the folders before them, unless two runs would then have one name. */
export function shortNames(names: string[]): string[] {
  const short = names.map((name) => name.split("/").at(-1) || name);
  return short.map((name, at) => (short.indexOf(name) === short.lastIndexOf(name) ? name : (names[at] ?? name)));
}

interface Named {
  letter: string;
  short: string;
}

/** The runs that are compared, by their numbers in the report. */
export const Compared = createContext(new Map<number, Named>());

export function comparedNames(runs: RunEntry[]): Map<number, Named> {
  const short = shortNames(runs.map((run) => run.name));
  return new Map(runs.map((run, at) => [run.number, { letter: String.fromCharCode(65 + at), short: short[at] ?? run.name }]));
}

/** Letter and short name of a run, as texts that charts and labels take. */
export function useNames(): { letter: (run: RunEntry) => string; short: (run: RunEntry) => string } {
  const names = useContext(Compared);
  return useMemo(
    () => ({ letter: (run: RunEntry) => names.get(run.number)?.letter ?? "", short: (run: RunEntry) => names.get(run.number)?.short ?? run.name }),
    [names],
  );
}

export const Letter = ({ run }: { run: RunEntry }) => {
  const letter = useNames().letter(run);
  return letter ? <span class="letter">{letter}</span> : null;
};

/** A run by its letter and its name; narrow screens have the letter alone where `folds`. */
export function RunName({ run, folds }: { run: RunEntry; folds?: boolean }) {
  const { letter, short } = useNames();
  return (
    <span class={`run-name ${folds && letter(run) ? "folds" : ""}`} title={plain(run.name)}>
      <Letter run={run} />
      <span>
        <Parted>{short(run)}</Parted>
      </span>
    </span>
  );
}

/** A name that may break after its separators, and so is never cut. */
export function Parted({ children }: { children: string }) {
  const parts = children.split(/(?<=[/_.,@:-])(?=[^/_.,@:-])/);
  return <>{parts.map((part, at) => (at ? [<wbr />, <Text>{part}</Text>] : <Text>{part}</Text>))}</>;
}
