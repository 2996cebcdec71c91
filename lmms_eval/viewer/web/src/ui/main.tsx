// The page of the evaluation server.
import "../style.css";
import "./ui.css";

import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { applyTheme, switchTheme, useTheme } from "../theme";
import { JobPage } from "./job";
import { JobsPage } from "./jobs";
import { MachinePage } from "./machine";
import { NewPage } from "./new";

const PLACES: [string, string][] = [["#/", "New evaluation"], ["#/jobs", "Evaluations"], ["#/machine", "Machine"]];

/** The address within the page: its place, and what is chosen there. */
function useHash(): [string, URLSearchParams] {
  const [hash, set] = useState(location.hash || "#/");
  useEffect(() => {
    const changed = () => set(location.hash || "#/");
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  const [place = "", chosen = ""] = hash.split(/\?(.*)/s);
  return [place, new URLSearchParams(chosen)];
}

/** Keys and readers begin at the top of a page that was just opened. */
function useFocusOnContent(place: string): void {
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current) {
      window.scrollTo(0, 0);
      document.getElementById("content")?.focus({ preventScroll: true });
    }
    isFirst.current = false;
  }, [place]);
}

function App() {
  const [place, chosen] = useHash();
  const job = /^#\/job\/([\w-]{1,80})$/.exec(place)?.[1];
  useFocusOnContent(place);
  const name = PLACES.find(([one]) => one === place)?.[1] ?? (job ? "Evaluation" : "New evaluation");
  useEffect(() => {
    document.title = [name, "lmms-eval"].filter(Boolean).join(" · ");
  }, [place]);
  return (
    <>
      <Top hash={job ? "#/jobs" : place} />
      <main id="content" class={name === "New evaluation" ? "wide new" : ""} tabIndex={-1} aria-label={name}>
        <Page place={place} job={job} tab={chosen.get("tab") ?? ""} />
      </main>
    </>
  );
}

function Page({ place, job, tab }: { place: string; job?: string; tab: string }) {
  if (job) return <JobPage key={job} id={job} tab={tab} />;
  if (place === "#/jobs") return <JobsPage />;
  if (place === "#/machine") return <MachinePage />;
  return <NewPage />;
}

function Top({ hash }: { hash: string }) {
  const theme = useTheme();
  return (
    <header class="top">
      <nav class="places" aria-label="Pages">
        <span class="name">lmms-eval</span>
        {PLACES.map(([place, name]) => (
          <a href={place} aria-current={place === hash ? "page" : undefined}>
            {name}
          </a>
        ))}
      </nav>
      <button onClick={switchTheme} aria-label={`Switch to ${theme === "dark" ? "light" : "dark"}`}>
        {theme === "dark" ? "Light" : "Dark"}
      </button>
    </header>
  );
}

applyTheme();
const root = document.getElementById("app");
if (root) render(<App />, root);
