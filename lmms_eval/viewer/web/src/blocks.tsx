// Parts of a sample's page under a heading of their own.
import type { ComponentChildren } from "preact";

import { Box } from "./box";
import { Text, told } from "./text";
import type { Json } from "./types";

/** `role`: whose words it holds, in whose colour it is marked. */
export function Block({ title, role, children }: { title: string; role?: "assistant" | "user"; children: ComponentChildren }) {
  return (
    <section class={`block ${role ?? ""}`}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

/** Characters of a value from which on it scrolls in a box of its own. */
const LONG = 1000;

export function Document({ doc }: { doc: Json | undefined }) {
  if (doc === null || typeof doc !== "object" || Array.isArray(doc)) return null;
  const fields = Object.entries(doc).filter(([, value]) => value !== null && value !== "");
  if (!fields.length) return null;
  return (
    <details class="block of-document" open={fields.length <= 8}>
      <summary>Document</summary>
      <dl class="facts">
        {fields.map(([name, value]) => (
          <>
            <dt>
              <Text>{name}</Text>
            </dt>
            <dd>
              {told(value).length > LONG ? <Box kind="div" of="long"><Text>{told(value)}</Text></Box> : <Text>{told(value)}</Text>}
            </dd>
          </>
        ))}
      </dl>
    </details>
  );
}
