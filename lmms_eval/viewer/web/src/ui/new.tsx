// A new evaluation: model, tasks, options, and beside them what they come to.
import { Waiting } from "../waiting";
import { api } from "./api";
import { ModelPart } from "./models";
import { OptionPart } from "./options";
import { useAsked } from "./store";
import { Summary, usePreview } from "./summary";
import { TaskPart } from "./tasks";

export function NewPage() {
  const { content, error } = useAsked("offer", api.offer);
  const { preview, error: refused } = usePreview();
  if (!content) return <main><Waiting error={error} /></main>;
  const { problems } = preview;
  return (
    <main class="wide new">
      <h1>New evaluation</h1>
      <div class="split">
        <div>
          <section class="step" aria-label="Model">
            <h2><span>1</span> Model</h2>
            <ModelPart models={content.models} problems={problems} />
          </section>
          <section class="step" aria-label="Tasks">
            <h2><span>2</span> Tasks</h2>
            <TaskPart problems={problems} />
          </section>
          <section class="step" aria-label="Options">
            <h2><span>3</span> Options</h2>
            <OptionPart options={content.options} problems={problems} />
          </section>
        </div>
        <Summary preview={preview} error={refused} />
      </div>
    </main>
  );
}
