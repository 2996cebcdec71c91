// Light and dark: what the system says, or what was chosen here.
import { useEffect, useState } from "preact/hooks";

const KEY = "lmms-eval-theme";
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function chosen(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null; // some browsers keep nothing for pages from disk
  }
}

export const theme = (): string => document.documentElement.dataset.theme ?? "light";

export function applyTheme(): void {
  document.documentElement.dataset.theme = chosen() ?? (dark.matches ? "dark" : "light");
  window.dispatchEvent(new Event("themechange"));
}

export function switchTheme(): void {
  const next = theme() === "dark" ? "light" : "dark";
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // it then holds until the page is closed
  }
  document.documentElement.dataset.theme = next;
  window.dispatchEvent(new Event("themechange"));
}

dark.addEventListener("change", applyTheme);

export function useTheme(): string {
  const [now, set] = useState(theme());
  useEffect(() => {
    const changed = () => set(theme());
    window.addEventListener("themechange", changed);
    return () => window.removeEventListener("themechange", changed);
  }, []);
  return now;
}
