// Keys that act while nothing is typed.
import { useEffect } from "preact/hooks";

export const isTyping = (event: KeyboardEvent): boolean =>
  event.target instanceof HTMLElement && event.target.closest("input,select,textarea") !== null;

export function useKeys(keys: Record<string, () => void>): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Enter" && event.target instanceof HTMLElement && event.target.closest("a,button,summary")) return;
      const action = Object.hasOwn(keys, event.key) ? keys[event.key] : undefined;
      if (!action) return;
      event.preventDefault();
      action();
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  });
}
