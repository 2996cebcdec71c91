// MileBench: the curve over numbers of pictures, its groups, and the grids of needles.
import { useState } from "preact/hooks";

import { Choose, list, Numbers, numeric, object } from "./benchmark_parts";
import { Curve, type Bar } from "./charts";
import { Section } from "./common";
import { Tabled } from "./tabled";
import { number, Text } from "./text";
import type { Cell, Json, JsonObject } from "./types";

const RULES = ["official", "fixed"];

function cell(value: Json | undefined, n: Json | undefined): Cell {
  const found = object(value);
  const count = numeric(n) ?? 0;
  return { value: numeric(found.score), low: numeric(found.low), high: numeric(found.high), n: count, method: count === 1 ? "n = 1" : undefined };
}

export function MileBench({ set, part }: { set: string; part: JsonObject }) {
  const [rule, choose] = useState("official");
  const groups = (name: string): Bar[] =>
    Object.entries(object(part[name])).map(([key, value]) => {
      const group = object(value);
      return { name: key, ...cell(group[rule] ?? object(group.partial)[rule], group.samples) };
    });
  return (
    <Section title={`MileBench, ${set}`}>
      {Boolean(part.is_partial) && <p class="quiet">Partial: no published number.</p>}
      <Choose names={RULES} now={rule} choose={choose} label="Rule" />
      <Pictures part={part} rule={rule} />
      {Object.entries(object(part.needle_grids)).map(([name, grid]) => (
        <Needles name={name} grid={object(grid)} />
      ))}
      <h3>Groups</h3>
      <Numbers bars={[...groups("overall"), ...groups("groups")]} label="Groups" />
      <details class="breakdown">
        <summary>
          <h3>Data sets</h3>
        </summary>
        <Numbers bars={groups("datasets")} label="Data sets" />
      </details>
    </Section>
  );
}

function Pictures({ part, rule }: { part: JsonObject; rule: string }) {
  const rows = list(part.by_images).filter((row) => row.by_sample);
  const scopes = [...new Set(rows.map((row) => String(row.scope)))];
  const [scope, choose] = useState(scopes[0] ?? "");
  const curve = rows.filter((row) => row.scope === scope);
  const levels = list(part.image_levels).filter((row) => row.scope === scope && row.by_sample);
  const named = (found: JsonObject[], key: string): Bar[] =>
    found.map((row) => ({ name: String(row[key]), ...cell(object(row.by_sample)[rule], row.samples) }));
  return (
    <>
      <h3>Score by number of pictures</h3>
      <Choose names={scopes} now={scope} choose={choose} label="Tasks" />
      <Numbers
        bars={named(curve, "images")}
        label="Score by number of pictures"
        plot={
          <Curve
            labels={curve.map((row) => String(row.images))}
            series={RULES.map((name) => ({ name, cells: curve.map((row) => cell(object(row.by_sample)[name], row.samples)) }))}
            label="Score by number of pictures"
          />
        }
      />
      {levels.length > 0 && (
        <>
          <h3>Few, medium and many pictures</h3>
          <Numbers bars={named(levels, "level")} label="Score by level of pictures" />
        </>
      )}
    </>
  );
}

/** How often a needle was found, by its depth and the length of the text around it. */
function Needles({ name, grid }: { name: string; grid: JsonObject }) {
  const texts = (key: string): string[] => (Array.isArray(grid[key]) ? (grid[key] as Json[]).map(String) : []);
  const at = (key: string, row: number, column: number): Json | undefined => {
    const lines = grid[key];
    const line = Array.isArray(lines) ? lines[row] : undefined;
    return Array.isArray(line) ? line[column] : undefined;
  };
  return (
    <Tabled label={name}>
      <h3>
        <Text>{name}</Text>
      </h3>
      <p class="quiet">Depth of the needle (rows) by length of the context (columns), official rule, in percent</p>
      <table class="heat">
        <thead>
          <tr>
            <th>Depth</th>
            {texts("lengths").map((length) => (
              <th class="number">
                <Text>{length}</Text>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {texts("depths").map((depth, row) => (
            <tr>
              <th scope="row">
                <Text>{depth}</Text>
              </th>
              {texts("lengths").map((_, column) => (
                <Needle
                  value={numeric(at("official", row, column))}
                  n={numeric(at("samples", row, column)) ?? 0}
                  ends={at("intervals", row, column)}
                />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Tabled>
  );
}

function Needle({ value, n, ends }: { value: number | null; n: number; ends: Json | undefined }) {
  if (value === null) return <td class="number">–</td>;
  const [low, high] = Array.isArray(ends) ? ends.map(numeric) : [];
  const between = low !== null && low !== undefined ? `${number(low, 3)} – ${number(high, 3)}` : "no interval";
  return (
    <td class={`number step${Math.round(value / 25)}`}>
      <b>{number(value, 3)}</b>
      <small class="line">{between}</small>
      <small class="line">n = {n}</small>
    </td>
  );
}
