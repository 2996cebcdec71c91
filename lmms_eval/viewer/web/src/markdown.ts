// Markdown with formulas as a tree of a few known kinds. No markup of the text's own, no addresses that lead anywhere,
// and nothing that would be left out: what is not understood stays as it was written.
import MarkdownIt, { type StateBlock, type StateInline, type Token } from "markdown-it";

import { plain } from "./text";

/** Texts beyond these stay as they are: a page must not wait for them. */
const LONGEST = 50_000;
const MOST_TOKENS = 10_000;
const DEEPEST = 32;
export const LONGEST_FORMULA = 2000;
const MOST_LINES = 60;
/** Characters of all formulas of a text. */
const MOST_FORMULAS = 20_000;

export interface Piece {
  token: Token;
  children: Piece[];
}

const parser = new MarkdownIt({ html: false, linkify: false, typographer: false, breaks: true });
// A definition of a link shows nothing of itself.
parser.disable("reference");
parser.inline.ruler.before("escape", "formula", within);
parser.block.ruler.before("fence", "formula", apart, { alt: ["paragraph", "blockquote", "list"] });

class TooMuch extends Error {}
let left = 0;

/** A few characters can ask for many cells of a table: parsing ends where there are too many. */
function spend(level: number): void {
  left -= 1;
  if (left < 0 || level > DEEPEST) throw new TooMuch();
}

parser.block.State = class extends parser.block.State {
  override push(...given: Parameters<StateBlock["push"]>): Token {
    spend(this.level);
    return super.push(...given);
  }
};
parser.inline.State = class extends parser.inline.State {
  override push(...given: Parameters<StateInline["push"]>): Token {
    spend(this.level);
    return super.push(...given);
  }
};

/** The text as a tree; nothing where it is too long or too deep for that. */
export function parsed(text: string): Piece[] | undefined {
  if (text.length > LONGEST) return undefined;
  left = MOST_TOKENS;
  try {
    const tokens = parser.parse(plain(text), {});
    const all = tokens.flatMap((token) => [token, ...(token.children ?? [])]);
    const formulas = all.reduce((length, { type, content }) => length + (type === "formula" ? content.length : 0), 0);
    return formulas > MOST_FORMULAS ? undefined : tree(tokens);
  } catch (error) {
    if (error instanceof TooMuch) return undefined;
    throw error;
  }
}

function tree(tokens: Token[]): Piece[] {
  const root: Piece[] = [];
  const open = [root];
  for (const token of tokens) {
    if (token.nesting < 0) {
      open.pop();
      continue;
    }
    const piece = { token, children: token.children ? tree(token.children) : [] };
    open[open.length - 1]?.push(piece);
    if (token.nesting > 0) open.push(piece.children);
  }
  return root;
}

const FENCES = [
  { open: "$$", close: "$$" },
  { open: "$", close: "$" },
  { open: "\\[", close: "\\]" },
  { open: "\\(", close: "\\)" },
];

/** A formula within a line. Single dollars are amounts of money unless they stand close around something. */
function within(state: StateInline, silent: boolean): boolean {
  const { src, pos } = state;
  const fence = FENCES.find(({ open }) => src.startsWith(open, pos));
  if (!fence) return false;
  const start = pos + fence.open.length;
  const content = before(src.slice(start, Math.min(state.posMax, start + LONGEST_FORMULA)), fence.close);
  const end = start + (content?.length ?? 0);
  if (!content?.trim()) return false;
  if (fence.open === "$" && (/^\s|\s$/.test(content) || /\d/.test(src[end + 1] ?? ""))) return false;
  if (!silent) push(state, content, fence.open);
  state.pos = end + fence.close.length;
  return true;
}

/** What stands before the first end that is not escaped. */
function before(text: string, close: string): string | undefined {
  for (let at = 0; at < text.length; at += text[at] === "\\" ? 2 : 1) if (text.startsWith(close, at)) return text.slice(0, at);
  return undefined;
}

/** A formula of its own lines: `$$`, `\[` or an environment, up to the line that it ends. */
function apart(state: StateBlock, first: number, last: number, silent: boolean): boolean {
  const line = (at: number) => state.src.slice((state.bMarks[at] ?? 0) + (state.tShift[at] ?? 0), state.eMarks[at]);
  const open = /^(?:\$\$|\\\[|\\begin\{([a-zA-Z]{1,20}\*?)\})/.exec(line(first));
  if (!open) return false;
  const environment = open[1];
  const close = environment ? `\\end{${environment}}` : open[0] === "$$" ? "$$" : "\\]";
  const lines: string[] = [];
  for (let at = first, length = 0; at < Math.min(last, first + MOST_LINES) && length <= LONGEST_FORMULA; at++) {
    if ((state.sCount[at] ?? 0) < state.blkIndent) return false;
    const text = at === first ? line(at).slice(open[0].length) : line(at);
    length += text.length + 1;
    if (!text.trimEnd().endsWith(close)) {
      if (text.includes(close)) return false;
      lines.push(text);
      continue;
    }
    lines.push(text.trimEnd().slice(0, -close.length));
    const content = lines.join("\n");
    if (content.includes(close) || !content.trim()) return false;
    if (silent) return true;
    state.line = at + 1;
    push(state, environment ? `${open[0]}${content}${close}` : content, environment ? "" : open[0]);
    return true;
  }
  return false;
}

/** Adds a formula; `markup` is how it began. */
function push(state: StateInline | StateBlock, content: string, markup: string): void {
  const token = state.push("formula", "", 0);
  token.content = content;
  token.markup = markup;
  token.block = "bMarks" in state;
}

/** The formula as it was written. */
export function written(token: Token): string {
  const fence = FENCES.find(({ open }) => open === token.markup);
  return `${token.markup}${token.content}${fence?.close ?? ""}`;
}
