// The keys, in a small window that takes the focus and gives it back.
import { useEffect, useRef } from "preact/hooks";

export type Keys = [string, string][];

const KEYS: Keys = [
  ["j / k", "next, previous sample"],
  ["J / K", "next, previous wrong answer"],
  ["Enter", "open the sample"],
  ["u / Esc", "back to the list"],
  ["/", "search in texts"],
  ["g", "grid or list"],
  ["m", "texts as written, or rendered"],
  ["?", "this help"],
];

export function Help({ close, keys = KEYS }: { close: () => void; keys?: Keys }) {
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    button.current?.focus();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <div class="help" role="dialog" aria-label="Shortcuts">
      <dl class="facts">
        {keys.map(([key, text]) => (
          <>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </>
        ))}
      </dl>
      <button ref={button} onClick={close}>
        Close
      </button>
    </div>
  );
}
