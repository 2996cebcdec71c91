// How certain a run's numbers are, task by task: the parts that lmms_eval/viewer/certainty.py makes, all in one form.
import { useState } from "preact/hooks";

import { Tasks } from "./breakdowns";
import { Section, SortedTable, type Column } from "./common";
import { alike, methodText, plain, Text } from "./text";
import type { CertaintyNumber, CertaintyPart, CertaintyShare, RunDetails } from "./types";

export function Certainty({ details }: { details: RunDetails }) {
  const { lines, tasks } = details.certainty;
  const names = Object.keys(tasks);
  const [name, choose] = useState(names[0] ?? "");
  if (!names.length && !lines.length) return null;
  return (
    <Section title="Certainty" id="certainty">
      {lines.map((line) => (
        <p>
          <Text>{line}</Text>
        </p>
      ))}
      <Tasks names={names} now={name} choose={choose} />
      {(tasks[name] ?? []).map((part) => (
        <Block part={part} />
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
      <Shares shares={part.shares} />
      {part.numbers.length > 0 && <SortedTable rows={part.numbers} columns={columnsOf(part.numbers)} label={part.title} />}
      {part.notes.map((note) => (
        <p class="quiet">
          <Text>{note}</Text>
        </p>
      ))}
    </div>
  );
}

const SHADES = ["--bar", "--second", "--third", "--fourth", "--fifth"];

/** One bar of all pieces, and the name and share of each below it. */
function Shares({ shares }: { shares: CertaintyShare[] }) {
  const whole = shares.reduce((sum, one) => sum + one.value, 0);
  if (!(whole > 0)) return null;
  const pieces = shares.map((one, place) => ({
    text: `${plain(one.name)} ${Math.round((100 * one.value) / whole)} %`,
    width: (100 * one.value) / whole,
    left: (100 * shares.slice(0, place).reduce((sum, before) => sum + before.value, 0)) / whole,
    shade: SHADES[place % SHADES.length] ?? "--bar",
  }));
  return (
    <>
      <svg class="shares" role="img" aria-label={pieces.map((piece) => piece.text).join(", ")} viewBox="0 0 100 1" preserveAspectRatio="none">
        {pieces.map((piece) => (
          <rect x={piece.left} width={piece.width} height="1" style={{ fill: `var(${piece.shade})` }} />
        ))}
      </svg>
      <p class="legend">
        {pieces.map((piece) => (
          <span>
            <i aria-hidden="true" style={{ background: `var(${piece.shade})` }} /> {piece.text}
          </span>
        ))}
      </p>
    </>
  );
}

type Format = (one: CertaintyNumber, value: number | null) => string;

const isAlike = (one: CertaintyNumber, other: CertaintyNumber): boolean => one.is_difference === other.is_difference && one.unit === other.unit;

/** Alike numbers of a part have one format; differences have a sign. */
const formatOf =
  (numbers: CertaintyNumber[]): Format =>
  (one, value) => {
    if (value === null) return "–";
    const size = alike(numbers.filter((other) => isAlike(one, other)).flatMap((other) => [other.value, other.low, other.high]));
    if (!one.is_difference) return size(value);
    return `${value > 0 ? "+" : value < 0 ? "−" : ""}${one.unit ? Math.abs(value).toFixed(2) : size(Math.abs(value))}`;
  };

/** The ends of the interval: of differences in brackets, since a sign follows a dash badly. */
function ends(one: CertaintyNumber, shown: Format): string {
  if (one.low === null) return "–";
  const [low, high] = [shown(one, one.low), shown(one, one.high)];
  return one.is_difference ? `[${low}, ${high}]` : `${low} – ${high}`;
}

const withUnit = (one: CertaintyNumber, text: string): string => (one.unit ? `${text} ${one.unit}` : text);

function columnsOf(numbers: CertaintyNumber[]): Column<CertaintyNumber>[] {
  const shown = formatOf(numbers);
  return [
    {
      name: "Number",
      value: (one) => one.name,
      cell: (one) => (
        <>
          <Text>{one.name}</Text>
          {one.verdict && <small class={`line ${TONES[one.verdict] ?? ""}`}>{one.verdict}</small>}
        </>
      ),
    },
    { name: "Value", class: "number", value: (one) => one.value, cell: (one) => one.value !== null && <b>{withUnit(one, shown(one, one.value))}</b> },
    {
      name: "95 % interval",
      class: "number",
      value: (one) => one.low,
      cell: (one) => (
        <>
          {ends(one, shown)}
          <small class="line narrow">{one.about}</small>
        </>
      ),
    },
    { name: "", head: <span class="unseen">Plot</span>, class: "whisker", value: () => null, cell: (one) => <Whisker one={one} among={numbers} /> },
    {
      name: "About",
      title: "What the interval is about: the score over all questions of this list, or the expected score over questions like these",
      class: "wide",
      value: (one) => one.about,
    },
    { name: "Method", title: "How the interval came about, or why there is none", class: "words", value: (one) => methodText(one.note) },
  ];
}

const TONES: Record<string, string> = { "ahead on this list": "right", "behind on this list": "wrong" };

const WIDTH = 160;

/** The interval as a line, on the axis of all alike numbers of the part. The numbers are in the same row. */
function Whisker({ one, among }: { one: CertaintyNumber; among: CertaintyNumber[] }) {
  if (one.low === null || one.high === null) return null;
  // a number without an interval, such as a count, may have another scale
  const alike = among.filter((other) => other.low !== null && isAlike(one, other));
  const ends = alike.flatMap((other) => [other.low, other.high, other.value]).filter((end): end is number => end !== null);
  if (one.is_difference) ends.push(0);
  const least = Math.min(...ends);
  const span = Math.max(...ends) - least || 1;
  const at = (value: number): number => 4 + ((WIDTH - 8) * (value - least)) / span;
  return (
    <svg aria-hidden="true" width={WIDTH} height="16">
      {one.is_difference && <line class="zero" x1={at(0)} x2={at(0)} y1="0" y2="16" />}
      <path d={`M${at(one.low)} 4V12M${at(one.low)} 8H${at(one.high)}M${at(one.high)} 4V12`} />
      {one.value !== null && <circle cx={at(one.value)} cy="8" r="3.5" />}
    </svg>
  );
}
