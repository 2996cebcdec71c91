// Texts that can be copied.
import { useState } from "preact/hooks";

import { copied } from "../clipboard";

export function Copy({ text, name }: { text: string; name: string }) {
  const [done, set] = useState<boolean>();
  const copy = async () => {
    set(await copied(text));
    setTimeout(() => set(undefined), 2000);
  };
  return (
    <button onClick={copy} aria-label={`Copy ${name}`}>
      {done === undefined ? "Copy" : done ? "Copied" : "Select it and copy"}
    </button>
  );
}

export function save(text: string, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/yaml" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
