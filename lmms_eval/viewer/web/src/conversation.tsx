// What was asked: messages with their media at their places, rounds with the answers between them.
import { useState } from "preact/hooks";

import { inside, MediumView } from "./media";
import { conversationsOf, type CallPiece, type MediumPiece, type Message, type Piece, type Sources } from "./messages";
import { Pre } from "./pre";
import { Drawn, Shapes } from "./shapes";
import { number, Text, told } from "./text";
import type { Medium, Sample, Shape } from "./types";

const ROLES: Record<string, string> = {
  system: "System",
  user: "User",
  assistant: "Assistant",
  tool: "Result of the task's function (not sent)",
};

export const sourcesOf = (sample: Sample): Sources => {
  const line = sample.lines[0] ?? {};
  return { input: told(line.input), sent: line.sent_media, media: sample.media ?? [], made: sample.made ?? {} };
};

/** What was asked, with shapes over its pictures. */
export const Asked = ({ sample, shapes }: { sample: Sample; shapes: Shape[] }) => (
  <Drawn shapes={shapes}>{(shown) => <Conversation sample={sample} shapes={shown} />}</Drawn>
);

/** The conversation as it went out; of samples that do not tell it the prompt with its media. */
function Conversation({ sample, shapes }: { sample: Sample; shapes: Shape[] }) {
  const sources = sourcesOf(sample);
  const conversations = conversationsOf(sample.lines[0]?.messages, sources);
  const [shown, show] = useState(0);
  const messages = conversations[Math.min(shown, conversations.length - 1)];
  if (!conversations.length) return <Prompt text={sources.input} media={sources.media} shapes={shapes} />;
  return (
    <>
      {conversations.length > 1 && (
        <p class="textform" role="group" aria-label="Repeats">
          {conversations.map((_, at) => (
            <button aria-pressed={at === shown} onClick={() => show(at)}>
              Repeat {at + 1}
            </button>
          ))}
        </p>
      )}
      {messages?.length ? (
        <Turns messages={messages} shapes={shapes} last={sources.media.length - 1} />
      ) : (
        <Prompt text={sources.input} media={sources.media} shapes={shapes} />
      )}
    </>
  );
}

/** Messages one after another. `last` is the number of the medium over which shapes of none are drawn. */
export function Turns({ messages, shapes = [], last = -1 }: { messages: Message[]; shapes?: Shape[]; last?: number }) {
  const content = (message: Message) => <Content content={message.content} shapes={shapes} last={last} />;
  const [only, ...more] = messages;
  if (only?.role === "user" && !more.length) return content(only);
  return (
    <ol class="turns">
      {messages.map((message, at) => (
        <>
          {message.round > (messages[at - 1]?.round ?? 0) && <Round message={message} />}
          <li class={`turn ${Object.hasOwn(ROLES, message.role) ? message.role : "other"}`}>
            <h3>
              <Speaker message={message} />
            </h3>
            {content(message)}
          </li>
        </>
      ))}
    </ol>
  );
}

/** Who says it; of a result the call that it belongs to. */
function Speaker({ message: { role, call } }: { message: Message }) {
  if (call !== undefined)
    return (
      <>
        Result of call <Text>{call}</Text>
      </>
    );
  return <>{Object.hasOwn(ROLES, role) ? ROLES[role] : <Text>{role}</Text>}</>;
}

const Call = ({ call: { id, name, arguments: given } }: CallPiece) => (
  <div class="call">
    <p class="quiet">
      Calls <Text>{name}</Text> (<Text>{id}</Text>) with
    </p>
    <Pre>{given}</Pre>
  </div>
);

function Round({ message: { round, after, continues } }: { message: Message }) {
  const which = after === 1 ? "the first message" : `the first ${after} messages`;
  const sent = after === 0 ? "sent without the messages above" : after !== undefined ? `sent after ${which} alone` : continues ? "sent after what came before" : "";
  return (
    <li class="round">
      Round {round + 1}
      {sent && ` – ${sent}`}
    </li>
  );
}

/** Texts, calls and media in order; media that follow each other stand in a row. */
function Content({ content, shapes, last }: { content: Piece[]; shapes: Shape[]; last: number }) {
  const rows: Row[] = [];
  for (const piece of content) {
    const row = rows[rows.length - 1];
    if ("text" in piece) rows.push(piece.text);
    else if ("call" in piece) rows.push(piece);
    else if (Array.isArray(row)) row.push(piece);
    else rows.push([piece]);
  }
  const shown = inStrips(rows.filter((row) => typeof row !== "string" || row.trim()));
  if (!shown.length) return <p class="empty">An empty message.</p>;
  return (
    <div class="messages">
      {shown.map((row) => {
        if (typeof row === "string") return <Pre>{row}</Pre>;
        if ("strip" in row) return <Strip frames={row.strip} shapes={shapes} last={last} />;
        return Array.isArray(row) ? <Media row={row} shapes={shapes} last={last} /> : <Call {...row} />;
      })}
    </div>
  );
}

type Row = string | CallPiece | MediumPiece[];

interface CaptionedPiece {
  caption: string;
  piece: MediumPiece;
}

/** Captions are short texts of one line; from so many pictures with one on, they stand in a strip. */
const CAPTION = /^\s*[^\n]{1,24}\s*$/;
const STRIP = 3;

/** Pictures that each follow a caption, such as frames of a video with their numbers, together. */
function inStrips(rows: Row[]): (Row | { strip: CaptionedPiece[] })[] {
  const found: (Row | { strip: CaptionedPiece[] })[] = [];
  for (let at = 0; at < rows.length; at++) {
    const strip: CaptionedPiece[] = [];
    for (let next = at; ; next += 2) {
      const [caption, media] = [rows[next], rows[next + 1]];
      const piece = Array.isArray(media) && media.length === 1 ? media[0] : undefined;
      if (typeof caption !== "string" || !CAPTION.test(caption) || !piece) break;
      strip.push({ caption: caption.trim().replace(/:$/, ""), piece });
    }
    if (strip.length >= STRIP) {
      found.push({ strip });
      at += 2 * strip.length - 1;
    } else found.push(rows[at] as Row);
  }
  return found;
}

const Strip = ({ frames, shapes, last }: { frames: CaptionedPiece[]; shapes: Shape[]; last: number }) => (
  <div class="strip captioned" tabIndex={0} role="region" aria-label="Frames">
    {frames.map(({ caption, piece }) => (
      <div>
        <small>
          <Text>{caption}</Text>
        </small>
        <Media row={[piece]} shapes={shapes} last={last} />
      </div>
    ))}
  </div>
);

function Media({ row, shapes, last }: { row: MediumPiece[]; shapes: Shape[]; last: number }) {
  const over = (at: number | undefined) => shapes.filter(({ medium }) => at !== undefined && (medium ?? last) === at);
  return (
    <div class="media">
      {row.map(({ medium, number: at, frame }) =>
        frame ? (
          <Frame medium={medium} {...frame} />
        ) : (
          <MediumView medium={medium}>{over(at).length > 0 && <Shapes shapes={over(at)} />}</MediumView>
        ),
      )}
    </div>
  );
}

/** One frame of a video where it stood; without its picture, its time. */
function Frame({ medium, time, number: at }: { medium: Medium; time: number | null; number: number }) {
  const src = inside(medium.frames?.find((frame) => frame.time === time)?.src);
  const name = medium.name.split("/").pop() ?? "";
  return (
    <figure class={src ? "frame" : "missing"}>
      {src && <img src={src} alt="" loading="lazy" />}
      <figcaption>
        Frame {at + 1} of <Text>{name || "a video"}</Text>
        {time !== null && ` at ${number(time, 3)} s`}
      </figcaption>
    </figure>
  );
}

const MARK = /<(?:image|video|audio)(?:[ _-]?\d{1,4})?>/g;

/** A text with its media at their marks, where there is a mark for each; else the media come first. */
export function Prompt({ text, media, shapes }: { text: string; media: Medium[]; shapes: Shape[] }) {
  const marks = [...text.matchAll(MARK)];
  const content: Piece[] = [];
  let end = 0;
  if (marks.length === media.length)
    marks.forEach((mark, at) => {
      content.push({ text: text.slice(end, mark.index).trim() }, { medium: media[at] as Medium, number: at });
      end = mark.index + mark[0].length;
    });
  else content.push(...media.map((medium, at) => ({ medium, number: at })));
  content.push({ text: marks.length === media.length && media.length ? text.slice(end).trim() : text });
  return <Content content={content} shapes={shapes} last={media.length - 1} />;
}
