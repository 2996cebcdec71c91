// Differences of two runs over the prompts that both were asked with, and the prompts that change the ranking.
import { keyOf, type Interval, type OverPrompts, type Pair } from "./pairs";
import { metricOf, probability, sized } from "./amounts";
import { Section, SortedTable, type Column } from "./common";
import { count, Text } from "./text";

interface Shown {
  pair: Pair;
  row: OverPrompts;
}

export function PromptDifferences({ pairs }: { pairs: Pair[] }) {
  const rows = pairs.flatMap((pair) => pair.prompts.map((row) => ({ pair, row })));
  if (!rows.length) return null;
  const columns: Column<Shown>[] = [
    { name: "Task", value: ({ row }) => row.name },
    { name: "Metric", value: ({ row }) => metricOf(row) },
    { name: "Difference", class: "number", value: ({ row }) => row.value, cell: ({ row }) => sized(row, row.value) },
    { name: "These prompts", class: "number", value: ({ row }) => ends(row, row.these, row.no_these) },
    { name: "Prompts like these", class: "number", value: ({ row }) => ends(row, row.like_these, row.no_like_these) },
    { name: "p", title: "Of the mean over prompts like these", class: "number", value: ({ row }) => row.p_like_these, cell: ({ row }) => probability(row.p_like_these) },
    { name: "N", class: "number", value: ({ row }) => row.n, cell: ({ row }) => count(row.n) },
    { name: "Ranking", class: "words", value: ({ row }) => ranking(row), cell: ({ row }) => <Text>{ranking(row)}</Text> },
  ];
  if (pairs.length > 1) columns.unshift({ name: "Pair", value: ({ pair }) => `${pair.first.name} − ${pair.second.name}` });
  return (
    <Section title="Over prompts">
      <SortedTable key={rows.map(({ row }) => keyOf(row)).join()} rows={rows} columns={columns} label="Differences over prompts" />
    </Section>
  );
}

function ends(row: OverPrompts, interval: Interval | null, reason: string): string {
  return interval ? `${sized(row, interval.low)} to ${sized(row, interval.high)}` : reason;
}

function ranking({ prompts, ahead, behind }: OverPrompts): string {
  const names = Object.keys(prompts);
  const most = behind.length > ahead.length ? behind : ahead;
  if (most.length === names.length) return `holds under all ${names.length} prompts`;
  const others = names.filter((name) => !most.includes(name));
  return `first ahead under ${ahead.length} of ${names.length}; changes under: ${others.join(", ")}`;
}
