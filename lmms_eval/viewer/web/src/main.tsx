import "./style.css";

import { render } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { AuditPage, isAudit } from "./audit";
import { useLoaded, Waiting } from "./common";
import { ComparePage } from "./compare";
import { Home } from "./home";
import { LIVE } from "./chunks";
import { LabelPage } from "./labels";
import { follow, LinkBanner } from "./link";
import { address, ALL, pageAddress, useRoute, type Route } from "./route";
import { RunPage } from "./run";
import { SamplePage } from "./sample";
import { Help } from "./help";
import { isTyping } from "./keys";
import { SamplesPage } from "./samples";
import { plain, Text } from "./text";
import { applyTheme, switchTheme, useTheme } from "./theme";
import type { Report } from "./types";

function App() {
  const { content, error } = useLoaded<Report>("runs");
  const route = useRoute();
  const [help, setHelp] = useState(false);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.key === "Escape" && isTyping(event)) (event.target as HTMLElement).blur();
      if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "?") setHelp((shown) => !shown);
      if (event.key === "Escape") setHelp(false);
      if (event.key === "/") {
        event.preventDefault();
        document.getElementById("search")?.focus();
      }
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);
  const title = plain([route.doc, route.task === ALL ? "" : route.task, route.run, "lmms-eval"].filter(Boolean).join(" · "));
  useFocus(title, [route.page, route.run, route.task, route.doc, isAudit(route.params)].join("\n"));
  return (
    <>
      <Top route={route} help={() => setHelp(!help)} />
      {LIVE && <LinkBanner />}
      <div id="content" tabIndex={-1} role="group" aria-label={title}>
        {content ? <Page report={content} route={route} /> : <main><Waiting error={error} /></main>}
      </div>
      {help && <Help close={() => setHelp(false)} />}
    </>
  );
}

/** Names the page, and takes the focus that was on the page before it, from which the next control is reached. */
function useFocus(title: string, page: string): void {
  const before = useRef(page);
  useLayoutEffect(() => {
    document.title = title;
    window.scrollTo(0, 0);
    if (before.current !== page) document.getElementById("content")?.focus({ preventScroll: true });
    before.current = page;
  }, [page]);
}

function Page({ report, route }: { report: Report; route: Route }) {
  if (route.page === "compare") return <ComparePage report={report} route={route} />;
  if (route.run === undefined) return <Home report={report} />;
  const run = report.runs.find((one) => one.name === route.run);
  if (!run) return <main><Waiting error={`the report holds no run ${route.run}`} /></main>;
  if (route.task === undefined && isAudit(route.params)) return <AuditPage key={run.number} run={run} />;
  if (route.task === undefined) return <RunPage key={run.number} run={run} />;
  if (route.doc === undefined) return <SamplesPage run={run} route={route} />;
  return <SamplePage run={run} route={route} />;
}

function Top({ route, help }: { route: Route; help: () => void }) {
  const theme = useTheme();
  return (
    <header class="top">
      <nav aria-label="Where">
        <a href="#/">{LIVE ? "View" : "Report"}</a>
        {route.page === "compare" && <a href={pageAddress("compare", route.params)}>Compare</a>}
        {route.run !== undefined && (
          <a href={address([route.run])}>
            <Text>{route.run}</Text>
          </a>
        )}
        {route.task !== undefined && (
          <a href={address([route.run, route.task], route.doc === undefined ? undefined : route.params)}>
            <Text>{route.task === ALL ? "all tasks" : route.task}</Text>
          </a>
        )}
        {route.doc !== undefined && (
          <span>
            <Text>{route.doc}</Text>
          </span>
        )}
      </nav>
      <div>
        <button onClick={help}>Shortcuts</button>
        <button onClick={switchTheme} aria-label={`${theme === "dark" ? "Light" : "Dark"} colours`}>
          {theme === "dark" ? "Light" : "Dark"}
        </button>
      </div>
    </header>
  );
}

applyTheme();
if (LIVE) follow();
const root = document.getElementById("app");
if (root) render(document.getElementById("chunk-labels") ? <LabelPage /> : <App />, root);
