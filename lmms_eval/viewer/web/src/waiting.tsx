// What stands in the place of what is not there yet, or cannot be.
import { Text } from "./text";

export function Waiting({ error }: { error?: string }) {
  return error ? (
    <p class="problem" role="alert">
      <Text>{error}</Text>
    </p>
  ) : (
    <p class="quiet" role="status">
      Loading …
    </p>
  );
}
