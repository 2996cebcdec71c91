// Markdown and formulas of models as elements: made one by one from the parser's tokens, never from a text of HTML.
import { Fragment, h, type ComponentChild, type ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";

import { Box } from "./box";
import { formula } from "./formula";
import { parsed, written, type Piece } from "./markdown";
import { Text } from "./text";

/** Elements for pairs of tokens. */
const PAIRS: Record<string, string> = {
  blockquote: "blockquote",
  bullet_list: "ul",
  em: "em",
  list_item: "li",
  ordered_list: "ol",
  paragraph: "p",
  s: "s",
  strong: "strong",
  table: "table",
  tbody: "tbody",
  td: "td",
  th: "th",
  thead: "thead",
  tr: "tr",
};

export function Rich({ text }: { text: string }) {
  const content = useMemo(() => parsed(text)?.map(made), [text]);
  if (content !== undefined) return <Box kind="div" of="rich" children={content} />;
  return (
    <>
      <Box>
        <Text>{text}</Text>
      </Box>
      <p class="quiet">Too long or too deep to be rendered: the text as it is.</p>
    </>
  );
}

function made(piece: Piece): ComponentChild {
  const { token } = piece;
  const kind = token.type.replace(/_open$/, "");
  const inner = piece.children.map(made);
  if (Object.hasOwn(PAIRS, kind)) return token.hidden ? <Fragment>{inner}</Fragment> : h(PAIRS[kind] as string, settings(piece), inner);
  switch (kind) {
    case "inline":
      return <Fragment>{inner}</Fragment>;
    case "heading": // they begin below those of the page
      return h(`h${Math.min(6, Number(token.tag.slice(1)) + 3)}`, null, inner);
    case "link":
      return <Link address={token.attrGet("href")} title={token.attrGet("title")} inner={inner} piece={piece} />;
    case "image":
      return <Link address={token.attrGet("src")} title={token.attrGet("title")} inner={inner} piece={piece} />;
    case "softbreak":
    case "hardbreak":
      return <br />;
    case "hr":
      return <hr />;
    case "code_inline":
      return (
        <code>
          <Text>{token.content}</Text>
        </code>
      );
    case "fence":
    case "code_block":
      return <Code language={token.info} content={token.content} />;
    case "formula":
      return <Formula piece={piece} />;
    default:
      return <Text>{token.content}</Text>;
  }
}

/** Attributes that a table or a list needs. */
function settings({ token }: Piece): Record<string, string> {
  const start = token.type === "ordered_list_open" ? token.attrGet("start") : null;
  const side = /^text-align:(left|right|center)$/.exec(String(token.attrGet("style") ?? ""))?.[1];
  return { ...(start === null ? {} : { start: String(start) }), ...(side ? { class: `to-${side}` } : {}) };
}

const Code = ({ language, content }: { language: string; content: string }) => (
  <>
    {language && (
      <small>
        <Text>{language}</Text>
      </small>
    )}
    <pre class="text">
      <Text>{content.replace(/\n$/, "")}</Text>
    </pre>
  </>
);

/** A link or a picture: nothing leads away or is loaded, so the address stands beside its text. */
function Link({ address, title, inner, piece }: { address: unknown; title: unknown; inner: ComponentChildren; piece: Piece }) {
  const only = piece.children[0]?.token.content;
  const isPicture = piece.token.type === "image";
  const told = [piece.children.length === 1 && only === address ? "" : address, title].filter(Boolean).join(" · ");
  return (
    <span class={isPicture ? "badge" : "away"}>
      {isPicture && "picture: "}
      {inner}
      {told && " "}
      {told && (
        <small>
          (<Text>{told}</Text>)
        </small>
      )}
    </span>
  );
}

function Formula({ piece }: { piece: Piece }) {
  const { token } = piece;
  const display = token.block || token.markup === "$$" || token.markup === "\\[";
  try {
    return <Fragment>{formula(token.content, display)}</Fragment>;
  } catch {
    // KaTeX raises errors of several kinds: whatever it cannot set is shown as it was written.
    return (
      <code>
        <Text>{written(token)}</Text>
      </code>
    );
  }
}
