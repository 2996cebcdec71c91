// What stands outside of components, and what is asked again and again.
import { useEffect, useState } from "preact/hooks";

export function useSyncExternalStore<T>(subscribe: (told: () => void) => () => unknown, read: () => T): T {
  const [value, set] = useState(read);
  useEffect(() => {
    set(() => read());
    const end = subscribe(() => set(() => read()));
    return () => void end();
  }, []);
  return value;
}

export interface Asked<T> {
  content?: T;
  error?: string;
  /** Whether an answer is awaited. */
  isAsking: boolean;
  again: () => void;
}

/** Asks at once and then every `every` milliseconds, as long as the page is in sight; 0: once. */
export function useAsked<T>(key: string, ask: () => Promise<T>, every = 0): Asked<T> {
  const [state, set] = useState<{ key?: string; content?: T; error?: string; turn?: number }>({});
  const [turn, next] = useState(0);
  useEffect(() => {
    let current = true;
    let timer = 0;
    const look = async () => {
      if (every && document.hidden) {
        timer = window.setTimeout(look, every);
        return;
      }
      try {
        const content = await ask();
        if (current) set({ key, content, turn });
      } catch (error) {
        if (current) set((old) => ({ key, content: old.key === key ? old.content : undefined, error: (error as Error).message, turn }));
      }
      if (current && every) timer = window.setTimeout(look, every);
    };
    void look();
    return () => {
      current = false;
      window.clearTimeout(timer);
    };
  }, [key, every, turn]);
  const again = () => next((number) => number + 1);
  const isAsking = state.key !== key || state.turn !== turn;
  return state.key === key ? { content: state.content, error: state.error, again, isAsking } : { again, isAsking };
}
