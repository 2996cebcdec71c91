// What a table of the page says, as LaTeX, Markdown or CSV. It is read from the table's elements, so that every table has it.

interface Entry {
  /** As the page shows it. */
  text: string;
  /** The number behind the text, with all its digits. */
  number?: number;
  /** Ends of an interval: as numbers, and as the page shows them. */
  ends?: [number, number];
  shown?: string;
  /** Further words of a score, such as why it has no interval. */
  note?: string;
}

export interface Grid {
  names: string[];
  rows: Entry[][];
  /** Columns of numbers, which are aligned to the right. */
  numeric: boolean[];
}

const APART = new Set(["BR", "DIV", "LI", "P", "SMALL"]);

/** The text of an element without what is only decoration; parts that have lines of their own are separated. */
function words(node: Node): string {
  if (node.nodeType === Node.TEXT_NODE) return node.textContent ?? "";
  if (!(node instanceof Element) || node.matches("[aria-hidden=true], .few-mark, .narrow")) return "";
  const inner = [...node.childNodes].map(words).join("");
  return APART.has(node.tagName) || node.matches(".line, .letter") ? ` ${inner} ` : inner;
}

const textOf = (node: Node): string => words(node).replace(/\s+/g, " ").trim();

const numberOf = (element: HTMLElement, name: string): number | undefined => {
  const value = element.dataset[name];
  return value === undefined || value === "" ? undefined : Number(value);
};

const IS_NUMBER = /^[+−-]?[\d,]*\.?\d+(e[+-]?\d+)?$/;

/** Two numbers between brackets, or with a dash between them. */
const INTERVAL = /^\[?([+−-]?[\d.]+)(?: – |, )([+−-]?[\d.]+)\]?$/;

const parsed = (text: string | undefined): number | undefined => (text === undefined ? undefined : Number(text.replace("−", "-")));

function entryOf(cell: HTMLElement): Entry {
  const scores = cell.querySelectorAll<HTMLElement>(".score");
  const [score] = scores;
  const text = textOf(cell);
  if (!score || scores.length > 1) return { text, number: IS_NUMBER.test(text) ? numberOf(cell, "value") : undefined };
  const value = score.querySelector("b");
  const [interval = "", ...rest] = [...score.querySelectorAll("small")].map(textOf);
  const written = INTERVAL.exec(interval);
  const [low, high] = [numberOf(score, "low") ?? parsed(written?.[1]), numberOf(score, "high") ?? parsed(written?.[2])];
  const hasEnds = low !== undefined && high !== undefined;
  return {
    text: value ? textOf(value) : text,
    number: numberOf(score, "value"),
    ends: hasEnds ? [low, high] : undefined,
    shown: hasEnds ? (written ? `${written[1]}, ${written[2]}` : interval.replace(" – ", ", ")) : undefined,
    note: [hasEnds ? "" : interval, ...rest].filter(Boolean).join("; "),
  };
}

/** Reads a table. Columns without a word, such as plots, are left out. */
export function readGrid(table: HTMLTableElement): Grid {
  const heads = [...(table.tHead?.rows[table.tHead.rows.length - 1]?.cells ?? [])];
  const rows = [...table.tBodies].flatMap((body) => [...body.rows].map((row) => [...row.cells].map(entryOf)));
  const used = heads.map((head, place) => textOf(head) !== "" || rows.some((row) => row[place]?.text)).map((isUsed, place) => isUsed && rows.some((row) => row[place]?.text));
  const kept = <T>(items: T[]): T[] => items.filter((_, place) => used[place] ?? true);
  return {
    names: kept(heads.map(textOf)),
    numeric: kept(heads.map((head) => head.classList.contains("number"))),
    rows: rows.map(kept),
  };
}

const LATEX: Record<string, string> = {
  "\\": "\\textbackslash{}", "&": "\\&", "%": "\\%", $: "\\$", "#": "\\#", _: "\\_", "{": "\\{", "}": "\\}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}",
  "<": "$<$", ">": "$>$", "|": "$|$", "−": "$-$", "–": "--", "—": "---", "±": "$\\pm$", "×": "$\\times$", "·": "$\\cdot$", "↓": "$\\downarrow$", "↑": "$\\uparrow$",
  "→": "$\\rightarrow$", "≤": "$\\leq$", "≥": "$\\geq$", "≈": "$\\approx$", "…": "\\ldots{}", "²": "$^2$", "α": "$\\alpha$", "κ": "$\\kappa$", "ρ": "$\\rho$",
  "▲": "$\\bigtriangleup$", "▼": "$\\bigtriangledown$", "○": "$\\circ$",
};

const latexText = (text: string): string => text.replace(/[\\&%$#_{}~^<>|−–—±×·↓↑→≤≥≈…²ακρ▲▼○]/g, (sign) => LATEX[sign] ?? sign);

const withInterval = ({ text, shown }: Entry): string => (shown ? `${text} [${shown}]` : text);

export function latex({ names, rows, numeric }: Grid): string {
  const line = (texts: string[]): string => `${texts.map(latexText).join(" & ")} \\\\`;
  // a line that begins with a bracket would be read as an argument of the line break before it
  const row = (texts: string[]): string => line(texts).replace(/^\[/, "{[}");
  return [
    "% \\usepackage{booktabs}",
    `\\begin{tabular}{${numeric.map((one) => (one ? "r" : "l")).join("")}}`,
    "\\toprule",
    line(names),
    "\\midrule",
    ...rows.map((entries) => row(entries.map(withInterval))),
    "\\bottomrule",
    "\\end{tabular}",
    "",
  ].join("\n");
}

export function markdown({ names, rows, numeric }: Grid): string {
  const line = (texts: string[]): string => `| ${texts.map((text) => text.replace(/[\\|]/g, "\\$&")).join(" | ")} |`;
  return [line(names), `| ${numeric.map((one) => (one ? "---:" : "---")).join(" | ")} |`, ...rows.map((entries) => line(entries.map(withInterval))), ""].join("\n");
}

/** One column for each number: the ends of intervals have their own, and so have the words of scores. */
export function csv({ names, rows }: Grid): string {
  const has = (place: number, key: "ends" | "note"): boolean => rows.some((row) => row[place]?.[key]);
  const columns = names.flatMap((name, place): [string, (row: Entry[]) => string | number | undefined][] => [
    [name, (row) => row[place]?.number ?? row[place]?.text],
    ...(has(place, "ends")
      ? ([
          [`${name} low`, (row) => row[place]?.ends?.[0]],
          [`${name} high`, (row) => row[place]?.ends?.[1]],
        ] as [string, (row: Entry[]) => number | undefined][])
      : []),
    ...(has(place, "note") ? ([[`${name} note`, (row) => row[place]?.note]] as [string, (row: Entry[]) => string | undefined][]) : []),
  ]);
  const field = (value: string | number | undefined): string => {
    const text = value === undefined || value === "–" ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns.map(([name]) => field(name)), ...rows.map((row) => columns.map(([, of]) => field(of(row))))].map((fields) => `${fields.join(",")}\r\n`).join("");
}
