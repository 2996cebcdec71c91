// Texts of models and data sets, as they are or rendered. At first they are as they are: whoever checks how an answer
// was read needs its very characters.
import { useEffect, useState } from "preact/hooks";

import { Box } from "./box";
import { Rich } from "./rich";
import { useKeys } from "./keys";
import { Text } from "./text";

let isRendered = false;

function toggle(): void {
  isRendered = !isRendered;
  window.dispatchEvent(new Event("textchange"));
}

/** Whether texts are rendered: one choice for all of a page, kept until it is closed. */
export function useRendered(): boolean {
  const [now, set] = useState(isRendered);
  useEffect(() => {
    const changed = () => set(isRendered);
    changed();
    window.addEventListener("textchange", changed);
    return () => window.removeEventListener("textchange", changed);
  }, []);
  return now;
}

/** A block of text. `exact` ones (errors, JSON) are never rendered. */
export function Pre({ children, grave, exact }: { children: unknown; grave?: boolean; exact?: boolean }) {
  const rendered = useRendered();
  if (rendered && !exact && !grave) return <Rich text={String(children ?? "")} />;
  return (
    <Box of={grave ? "text grave" : "text"}>
      <Text>{children}</Text>
    </Box>
  );
}

/** The switch between both forms; `m` does the same. */
export function TextForm() {
  const rendered = useRendered();
  useKeys({ m: toggle });
  return (
    <span class="textform" role="group" aria-label="Texts">
      {[false, true].map((value) => (
        <button aria-pressed={rendered === value} onClick={() => rendered !== value && toggle()}>
          {value ? "Rendered" : "As written"}
        </button>
      ))}
    </span>
  );
}
