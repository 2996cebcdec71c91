// The samples that a report holds, where they are not all of the run.
import { count, plain } from "./text";
import type { RunEntry } from "./types";

/** Says how samples were chosen; `what` says which numbers rest on them. */
export function Selection({ run, what = "" }: { run: RunEntry; what?: string }) {
  const { how, shown, of } = run.selection;
  if (!how.length) return null;
  return (
    <p class="selection" role="note">
      Only {count(shown)} of {count(of)} samples are in this report: <code>{plain(how.join(" "))}</code> {what}
    </p>
  );
}
