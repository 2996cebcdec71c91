// Boxes, points and masks over a picture, each side of which can be hidden.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { inside } from "./media";
import { Text } from "./text";
import type { Shape } from "./types";

/** Boxes and points in shares of the picture's sides, references whole, answers dashed; masks as pictures over it. */
export function Shapes({ shapes }: { shapes: Shape[] }) {
  return (
    <>
      {shapes.map(({ of, src }) => inside(src) && <img class={`mask ${of}`} src={inside(src)} alt="" />)}
      <svg class="shapes" viewBox="0 0 1 1" preserveAspectRatio="none" aria-hidden="true">
        {shapes.map(({ of, at }) => at && <Outline of={of} at={at} />)}
      </svg>
    </>
  );
}

function Outline({ of, at: [left = 0, top = 0, right, bottom] }: { of: string; at: number[] }) {
  if (right === undefined || bottom === undefined) return <path class={`${of} point`} d={`M${left} ${top}h0`} />;
  return <rect class={of} x={left} y={top} width={Math.max(0, right - left)} height={Math.max(0, bottom - top)} />;
}

const SIDES = ["reference", "answer"] as const;

/** Shapes with buttons that hide either side. */
export function Drawn({ shapes, children }: { shapes: Shape[]; children: (shown: Shape[]) => ComponentChildren }) {
  const [hidden, hide] = useState<string[]>([]);
  const sides = SIDES.filter((side) => shapes.some(({ of }) => of === side));
  const toggle = (side: string) => hide(hidden.includes(side) ? hidden.filter((one) => one !== side) : [...hidden, side]);
  return (
    <>
      {sides.length > 0 && (
        <p class="drawn" role="group" aria-label="Drawn over the pictures">
          {sides.map((side) => (
            <button class={side} aria-pressed={!hidden.includes(side)} onClick={() => toggle(side)}>
              {side}
            </button>
          ))}
          <Labels shapes={shapes} />
        </p>
      )}
      {children(shapes.filter(({ of }) => !hidden.includes(of)))}
    </>
  );
}

function Labels({ shapes }: { shapes: Shape[] }) {
  const said = SIDES.map((side) => {
    const labels = [...new Set(shapes.filter(({ of, label }) => of === side && label).map(({ label }) => label))];
    return labels.length ? `${side}: ${labels.join(", ")}` : "";
  });
  const text = said.filter(Boolean).join(" · ");
  return text ? (
    <small>
      <Text>{text}</Text>
    </small>
  ) : null;
}
