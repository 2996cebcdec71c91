// A formula of LaTeX as MathML. KaTeX makes elements; of those only kinds and values that are listed here are made anew,
// so that no text can bring an address, a style, a colour that hides it or anything else that is no formula.
import katex from "katex";
import { h, type ComponentChild } from "preact";

import { lettered } from "./letters";
import { LONGEST_FORMULA } from "./markdown";
import { plain } from "./text";

const ELEMENTS = new Set([
  "math", "menclose", "mfrac", "mi", "mn", "mo", "mover", "mpadded", "mphantom", "mroot", "mrow", "mspace", "msqrt",
  "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr", "munder", "munderover", "semantics",
]);
const WORD = /^[a-z -]{1,40}$/;
const LENGTH = /^\d{0,2}(\.\d{1,6})?em$/;
const ATTRIBUTES: Record<string, RegExp> = {
  accent: WORD,
  accentunder: WORD,
  display: WORD,
  displaystyle: WORD,
  fence: WORD,
  form: WORD,
  largeop: WORD,
  linethickness: LENGTH,
  mathvariant: WORD,
  maxsize: LENGTH,
  minsize: LENGTH,
  movablelimits: WORD,
  notation: WORD,
  scriptlevel: /^[0-3]$/,
  separator: WORD,
  stretchy: WORD,
};
/** Commands that show nothing of what they are given or would change what others mean, remarks, hidden characters. */
const REFUSED =
  /\\(?:[egx]?def|let|futurelet|global|long|(?:re)?newcommand|providecommand|message|errmessage|show|href|url|includegraphics|html[A-Z][a-z]*)(?![a-zA-Z])|(?:^|[^\\])(?:\\\\)*%|⟨U\+/;
const DEEPEST = 40;
const MOST_ELEMENTS = 2000;

/** Makes the formula; raises an error where it cannot be set. */
export function formula(source: string, display: boolean): ComponentChild {
  if (source.length > LONGEST_FORMULA || REFUSED.test(source)) throw new Error("this formula stays as it was written");
  const place = document.createElement("div");
  katex.render(source, place, {
    displayMode: display,
    output: "mathml",
    trust: false,
    strict: "ignore",
    throwOnError: true,
    maxExpand: 200,
    maxSize: 10,
  });
  const made = place.querySelector("math");
  if (!made || made.getElementsByTagName("*").length > MOST_ELEMENTS) throw new Error("this formula is too large");
  return anew(made, 0);
}

function anew(element: Element, depth: number): ComponentChild {
  const name = element.localName;
  if (depth > DEEPEST || !ELEMENTS.has(name)) throw new Error(`${name} is no part of a formula`);
  // The other child is the source once more.
  if (name === "semantics") return element.firstElementChild && anew(element.firstElementChild, depth + 1);
  const known: Record<string, string> = {};
  for (const { name: key, value } of Array.from(element.attributes))
    if (Object.hasOwn(ATTRIBUTES, key) && ATTRIBUTES[key]?.test(value)) known[key] = value;
  if (name === "mspace") known.width = LENGTH.test(element.getAttribute("width") ?? "") ? (element.getAttribute("width") as string) : "0";
  if (name === "mtd") known.class = aligned(element);
  // What was to leave a gap of its own size is shown: nothing of a text is hidden.
  const inner = element.childElementCount
    ? Array.from(element.children, (child) => anew(child, depth + 1))
    : plain(lettered(element.textContent ?? "", name === "mtext" ? "" : (known.mathvariant ?? "")));
  return h(name === "mphantom" ? "mrow" : name, known, inner);
}

/** The class of a cell by its column: browsers know no `columnalign`. */
function aligned(cell: Element): string {
  const row = cell.parentElement;
  const sides = row?.parentElement?.getAttribute("columnalign")?.split(" ") ?? [];
  const side = sides[row ? Array.from(row.children).indexOf(cell) : 0] ?? "";
  return side === "left" || side === "right" ? `to-${side}` : "";
}
