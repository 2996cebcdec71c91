// Parts of a sample's page under a heading of their own.
import type { ComponentChildren } from "preact";

import { Text, told } from "./text";
import type { Json } from "./types";

export function Block({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="block">
      <h2>{title}</h2>
      {children}
    </section>
  );
}

export function Document({ doc }: { doc: Json | undefined }) {
  if (doc === null || typeof doc !== "object" || Array.isArray(doc)) return null;
  const fields = Object.entries(doc).filter(([, value]) => value !== null && value !== "");
  if (!fields.length) return null;
  return (
    <details class="block" open={fields.length <= 8}>
      <summary>Document</summary>
      <dl class="facts">
        {fields.map(([name, value]) => (
          <>
            <dt>
              <Text>{name}</Text>
            </dt>
            <dd>
              <Text>{told(value)}</Text>
            </dd>
          </>
        ))}
      </dl>
    </details>
  );
}
