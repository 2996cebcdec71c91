// The transcript of a judge: each question as it was asked, every reply to it, and whether it could be read.
import { Block } from "./blocks";
import { Turns } from "./conversation";
import { isObject, messagesOf, type Message, type Sources } from "./messages";
import { Pre } from "./pre";
import { Value } from "./scores";
import { count, Text, told } from "./text";
import type { Json, JsonObject, Medium, Sample } from "./types";

export function Judge({ sample }: { sample: Sample }) {
  const judge = sample.lines[0]?.judge;
  if (!Array.isArray(judge) || !judge.length) return null;
  const asked = judge.map((one, at) => (isObject(one) ? messagesOf(one.asked, sources(one, at, sample.made ?? {})) : []));
  return (
    <Block title={judge.length > 1 ? `Judge, ${judge.length} questions` : "Judge"}>
      {judge.map((one, at) => {
        if (!isObject(one)) return <Pre>{told(one)}</Pre>;
        const before = judge.slice(0, at).find((other) => isObject(other) && told(other.prompt) !== "" && other.prompt === one.prompt);
        return <Judgement verdict={one} asked={asked[at] ?? []} same={isObject(before) ? told(before.name) : ""} />;
      })}
    </Block>
  );
}

function sources(verdict: JsonObject, at: number, made: Record<string, Medium>): Sources {
  const sent = Array.isArray(verdict.sent_media) ? verdict.sent_media : [];
  const media = sent.map((_, number): Medium => {
    const name = `judge/${at}/${number}`;
    return (Object.hasOwn(made, name) ? made[name] : undefined) ?? { kind: "medium", name: "" };
  });
  return { input: "", sent, media, made };
}

/** `same`: the name of an earlier question with the very same prompt. */
function Judgement({ verdict, asked, same }: { verdict: JsonObject; asked: Message[]; same: string }) {
  const { name, text, accepted, model, prompt, replies, usage, error, details, asked: _, sent_media: __, ...rest } = verdict;
  const said: Json[] = Array.isArray(replies) && replies.length ? replies : text === null || text === undefined ? [] : [text];
  return (
    <article class="judgement">
      <h3>
        <Text>{told(name)}</Text> <small><Text>{[told(model), tokens(usage)].filter(Boolean).join(", ")}</Text></small>
      </h3>
      {asked.length > 0 && !same && <Question asked={asked} />}
      {same && (
        <p class="quiet">
          The same prompt as <Text>{same}</Text>.
        </p>
      )}
      {said.map((reply, at) => (
        <Reply reply={reply} attempt={said.length > 1 ? at + 1 : 0} readable={at === said.length - 1 && accepted !== false} />
      ))}
      {error && <Pre grave>{told(error)}</Pre>}
      {isObject(details) && <Value value={details} />}
      {Object.keys(rest).length > 0 && <Value value={rest} />}
      {told(prompt) && !same && (
        <p class="quiet">
          Fingerprint of the prompt: <Text>{told(prompt)}</Text>
        </p>
      )}
    </article>
  );
}

const LONG = 1500;

function Question({ asked }: { asked: Message[] }) {
  const length = asked.flatMap((message) => message.content).reduce((all, piece) => all + ("text" in piece ? piece.text.length : 0), 0);
  return (
    <details open={length < LONG}>
      <summary>Prompt, {count(length)} characters</summary>
      <Turns messages={asked} />
    </details>
  );
}

function Reply({ reply, attempt, readable }: { reply: Json; attempt: number; readable: boolean }) {
  return (
    <>
      <h4>
        {attempt ? `Reply ${attempt}` : "Reply"} {!readable && <span class="badge grave">not readable</span>}
      </h4>
      <Pre>{told(reply)}</Pre>
    </>
  );
}

function tokens(usage: Json | undefined): string {
  if (!Array.isArray(usage)) return "";
  const [sent, got] = usage;
  return `${count(typeof sent === "number" ? sent : null)} tokens in, ${count(typeof got === "number" ? got : null)} out`;
}
