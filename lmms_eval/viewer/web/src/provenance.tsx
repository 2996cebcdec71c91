// How a run came about: configuration, provenance, and the command that continues it.
import { Box } from "./box";
import { cost, total } from "./home";
import { count, seconds, Text, told } from "./text";
import type { JsonObject, RunDetails, RunEntry } from "./types";

const SHOWN = ["config", "model", "judge", "cache", "sandbox", "library_versions", "machine", "versions", "n-shot", "timing", "usage", "throughput", "streams"];

export function Provenance({ run, details }: { run: RunEntry; details: RunDetails }) {
  const document = details.document;
  const facts: [string, unknown][] = [
    ["Model", run.model],
    ["Source", run.source],
    ["Arguments", told(run.model_args)],
    ["Run key", document.run_key],
    ["Commit", document.git_hash],
    ["Version", (document.library_versions as JsonObject | undefined)?.lmms_eval],
    ["Prompts", document.prompt_fingerprint],
    ["Tokens", total(run, "total_tokens") === null ? "" : `${count(total(run, "input_tokens"))} in, ${count(total(run, "output_tokens"))} out`],
    ["Cost", cost(run) === "–" ? "" : cost(run)],
    ["Wall time", run.seconds ? seconds(Number(run.seconds)) : ""],
  ];
  const parts = SHOWN.filter((key) => document[key] && Object.keys(document[key] as object).length);
  return (
    <>
      <dl class="facts">
        {facts.map(
          ([name, value]) =>
            value ? (
              <>
                <dt>{name}</dt>
                <dd>
                  <Text>{told(value)}</Text>
                </dd>
              </>
            ) : null,
        )}
      </dl>
      {run.command && (
        <>
          <h3>Command that continues the run</h3>
          <Box>
            <Text>{run.command}</Text>
          </Box>
        </>
      )}
      {run.notes.length > 0 && (
        <ul>
          {run.notes.map((note) => (
            <li>
              <Text>{note}</Text>
            </li>
          ))}
        </ul>
      )}
      {parts.map((key) => (
        <details>
          <summary>{key.replaceAll("_", " ")}</summary>
          <Box>
            <Text>{JSON.stringify(document[key], null, 2)}</Text>
          </Box>
        </details>
      ))}
    </>
  );
}
