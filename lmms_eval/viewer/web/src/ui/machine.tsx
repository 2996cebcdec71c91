// What a run would find on the server's machine.
import { Waiting } from "../waiting";
import { Text } from "../text";
import { api } from "./api";
import { useAsked } from "./store";

export function MachinePage() {
  const { content, error, again } = useAsked("machine", api.machine);
  const sections = content ? grouped(content.lines) : [];
  return (
    <main>
      <h1>This machine</h1>
      <p class="quiet">What an evaluation would find here, as <code>lmms-eval doctor</code> says it. Of keys it is only told whether they are there.</p>
      {!content && <Waiting error={error} />}
      <div class="cards">
        {sections.map(([title, lines]) => (
          <section class="card machine">
            <h3><Text>{title}</Text></h3>
            <ul>
              {lines.map((line) => (
                <li class={/absent|missing|not active|refused/.test(line) ? "quiet" : ""}><Text>{line}</Text></li>
              ))}
            </ul>
          </section>
        ))}
      </div>
      {content && <p><button onClick={again}>Look again</button></p>}
    </main>
  );
}

/** Lines that are indented belong to the heading before them. */
function grouped(lines: string[]): [string, string[]][] {
  const found: [string, string[]][] = [];
  for (const line of lines) {
    if (!line.trim()) continue;
    if (line.startsWith(" ")) found.at(-1)?.[1].push(line.trim());
    else found.push([line, []]);
  }
  return found;
}
