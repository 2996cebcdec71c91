// Fields of options and arguments: what is left at its default is not part of the request.
import { useState } from "preact/hooks";

import { plain, Text } from "../text";
import type { Default, Kind, Problem, Value } from "./api";

export interface FieldProps {
  /** Tells fields of one name apart: an option and an argument of the model. */
  of?: "field" | "argument";
  name: string;
  kind: Kind;
  default: Default;
  choices: string[];
  text: string;
  value: Value | undefined;
  change: (value: Value | undefined) => void;
  required?: boolean;
  placeholder?: string;
  problems: Problem[];
}

export function Field(props: FieldProps) {
  const id = `${props.of ?? "field"}-${props.name}`;
  const wrong = props.problems.filter((one) => one.name === props.name);
  return (
    <div class={`entry ${props.kind === "switch" && props.default !== null ? "switch" : ""}`}>
      <label for={id}>
        {plain(props.name)}
        {props.required && <span class="needed">required</span>}
      </label>
      <Control {...props} id={id} wrong={wrong.length > 0} />
      <small id={`${id}-help`}>
        <Text>{props.text.replaceAll("`", "")}</Text>
      </small>
      {wrong.map((one) => (
        <p class="problem">
          <Text>{one.text}</Text>
        </p>
      ))}
    </div>
  );
}

const SWITCH: Record<string, boolean> = { true: true, false: false };

type ControlProps = FieldProps & { id: string; wrong: boolean };

function Control(props: ControlProps) {
  const { id, kind, choices, value, change, wrong } = props;
  const common = { id, "aria-describedby": `${id}-help`, "aria-invalid": wrong };
  if (kind === "switch" && props.default === null)
    return (
      <select {...common} value={told(value)} onChange={(event) => change(SWITCH[event.currentTarget.value])}>
        <option value="">–</option>
        <option value="true">true</option>
        <option value="false">false</option>
      </select>
    );
  if (kind === "switch") {
    const shown = typeof value === "boolean" ? value : props.default === true;
    const set = (on: boolean) => change(on === (props.default === true) ? undefined : on);
    return <input {...common} type="checkbox" checked={shown} onChange={(event) => set(event.currentTarget.checked)} />;
  }
  if (choices.length)
    return (
      <select {...common} value={told(value)} onChange={(event) => change(event.currentTarget.value || undefined)}>
        <option value="">{props.default === null ? "–" : `${plain(props.default)} (default)`}</option>
        {choices.filter((one) => one !== props.default).map((one) => (
          <option value={one}>{plain(one)}</option>
        ))}
      </select>
    );
  return <TextControl {...props} />;
}

/** Keeps what is typed: `1.` must not become `1` before the next digit. */
function TextControl({ id, kind, value, change, wrong, ...props }: ControlProps) {
  const [typed, type] = useState<string | undefined>(undefined);
  const hint = props.placeholder ?? (props.default === null || props.default === false ? "" : String(props.default));
  return (
    <input
      id={id}
      aria-describedby={`${id}-help`}
      aria-invalid={wrong}
      inputMode={kind === "number" || kind === "whole number" ? "decimal" : undefined}
      placeholder={plain(hint)}
      spellcheck={false}
      autocomplete="off"
      value={typed ?? told(value)}
      onInput={(event) => {
        type(event.currentTarget.value);
        change(valueOf(event.currentTarget.value, kind));
      }}
      onBlur={() => type(undefined)}
    />
  );
}

export function told(value: Value | undefined): string {
  if (value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** The value of a text: numbers where they are asked for, JSON where it is; anything else is told by the server. */
export function valueOf(text: string, kind: Kind): Value | undefined {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  if (kind === "number" || kind === "whole number") return Number.isFinite(Number(trimmed)) ? Number(trimmed) : trimmed;
  if (kind !== "JSON") return text;
  try {
    return JSON.parse(trimmed) as Value;
  } catch {
    return text;
  }
}
