// The messages of a sample or of a judge's prompt as docs/results.md tells them; other forms are none.
import { told } from "./text";
import type { Json, JsonObject, Medium } from "./types";

/** A medium, by its number among those that were sent; `frame`: one of a video alone. */
export interface MediumPiece {
  medium: Medium;
  number?: number;
  frame?: { time: number | null; number: number };
}

/** A call of a tool by the model. */
export interface CallPiece {
  call: { id: string; name: string; arguments: string };
}

export type Piece = { text: string } | CallPiece | MediumPiece;

export interface Message {
  role: string;
  content: Piece[];
  round: number;
  /** How many of the conversation's first messages the model got before this one, and nothing else. */
  after?: number;
  /** The model got it after all that the round before had sent, and the answer to that. */
  continues: boolean;
  /** Of a tool's result: the id of the call. */
  call?: string;
}

/** What messages refer to. */
export interface Sources {
  input: string;
  sent: Json | undefined;
  media: Medium[];
  made: Record<string, Medium>;
}

export const isObject = (value: Json | undefined): value is JsonObject =>
  value !== null && typeof value === "object" && !Array.isArray(value);

/** The conversation, or one for each repeat where they differ; none where a line tells of none. */
export function conversationsOf(value: Json | undefined, sources: Sources): Message[][] {
  if (!Array.isArray(value) || !value.length) return [];
  const several = Array.isArray(value[0]) ? value : [value];
  const found = several.map((one) => messagesOf(one, sources));
  return found.some((messages) => messages.length) ? found : [];
}

export function messagesOf(value: Json | undefined, sources: Sources): Message[] {
  if (!Array.isArray(value) || !value.every((one) => isObject(one) && Array.isArray(one.content))) return [];
  const characters = [...sources.input]; // places count characters, not the halves of those beyond 16 bits
  return (value as JsonObject[]).map((one) => ({
    role: told(one.role),
    content: (one.content as Json[]).filter(isObject).map((part) => piece(part, sources, characters)),
    round: typeof one.round === "number" ? one.round : 0,
    after: typeof one.after === "number" ? one.after : undefined,
    continues: one.continues === true,
    call: typeof one.call === "string" ? one.call : undefined,
  }));
}

function piece(part: JsonObject, sources: Sources, characters: string[]): Piece {
  if (Array.isArray(part.input)) return { text: characters.slice(Number(part.input[0]), Number(part.input[1])).join("") };
  if (typeof part.media === "number") return sentPiece(part, part.media, sources);
  if (isObject(part.call))
    return { call: { id: told(part.call.id), name: told(part.call.name), arguments: told(part.call.arguments) } };
  if (part.type === undefined) return { text: told(part.text) };
  const path = told(part.path);
  const made = Object.hasOwn(sources.made, path) ? sources.made[path] : undefined;
  return { medium: made ?? { kind: told(part.type), name: path, missing: undefined } };
}

function sentPiece(part: JsonObject, number: number, { sent, media }: Sources): Piece {
  const medium = media[number] ?? { kind: "medium", name: "" };
  if (typeof part.frame !== "number") return { medium, number };
  const entry = Array.isArray(sent) ? sent[number] : undefined;
  const times = isObject(entry) && Array.isArray(entry.times) ? entry.times : [];
  const time = times[part.frame];
  return { medium, number, frame: { time: typeof time === "number" ? time : null, number: part.frame } };
}
