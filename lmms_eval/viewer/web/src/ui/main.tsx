// The page of the evaluation server.
import "../style.css";
import "./ui.css";

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";

import { applyTheme, switchTheme, useTheme } from "../theme";
import { JobPage } from "./job";
import { JobsPage } from "./jobs";
import { MachinePage } from "./machine";
import { NewPage } from "./new";

const PLACES: [string, string][] = [["#/", "New evaluation"], ["#/jobs", "Evaluations"], ["#/machine", "Machine"]];

function useHash(): string {
  const [hash, set] = useState(location.hash || "#/");
  useEffect(() => {
    const changed = () => {
      set(location.hash || "#/");
      window.scrollTo(0, 0);
    };
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return hash;
}

function App() {
  const hash = useHash();
  const job = /^#\/job\/([\w-]{1,80})$/.exec(hash)?.[1];
  useEffect(() => {
    const name = PLACES.find(([place]) => place === hash)?.[1] ?? (job ? "Evaluation" : "");
    document.title = [name, "lmms-eval"].filter(Boolean).join(" · ");
  }, [hash]);
  return (
    <>
      <Top hash={job ? "#/jobs" : hash} />
      <Page hash={hash} job={job} />
    </>
  );
}

function Page({ hash, job }: { hash: string; job?: string }) {
  if (job) return <JobPage key={job} id={job} />;
  if (hash === "#/jobs") return <JobsPage />;
  if (hash === "#/machine") return <MachinePage />;
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
