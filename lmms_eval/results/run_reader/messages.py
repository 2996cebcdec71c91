"""The conversation of a sample, or the prompt of a judge, as typed messages (``docs/results.md``, "Messages")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a message: a text, a medium, or a call of a tool."""

    text: str = ""
    kind: str = "text"
    """``text``, ``image``, ``video`` or ``audio``; ``call`` of a tool, its name and arguments being the text."""
    medium: Mapping[str, Any] | None = None
    """The entry of ``sent_media``, or the picture that the model made; ``None``: it is not told."""
    frame: int | None = None
    """It is this one of the video's frames alone."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a conversation."""

    role: str
    content: tuple[Piece, ...]
    round: int = 0
    after: int | None = None
    """Of a round's first message: the model got it after this many of the conversation's first messages alone."""
    continues: bool = False
    """Of a round's first message: the model got it after all that the round before had sent, and its answer."""
    call: str = ""
    """Of a tool's result: the id of the call."""

    @property
    def text(self) -> str:
        """The texts joined."""
        return "".join(piece.text for piece in self.content if piece.kind == "text")


Conversation = tuple[Message, ...]


def conversations_of(record: Mapping[str, Any], prompt: str) -> tuple[Conversation, ...]:
    """Read the conversations of a sample: one for all answers, or one for each where they differ.

    Of a line without ``messages``, or whose ``messages`` are of another form, ``prompt`` is what the user said.
    """
    found = record.get("messages")
    sent = record.get("sent_media")
    media = sent if isinstance(sent, list) else []
    several = found if isinstance(found, list) and found and isinstance(found[0], list) else [found]
    return tuple(read_messages(one, media, prompt) or _only(media, prompt) for one in several)


def read_messages(found: Any, media: Sequence[Any], prompt: str = "") -> Conversation:
    """Read a list of messages; empty if it is none."""
    if not isinstance(found, list):
        return ()
    try:
        return tuple(_message(one, media, prompt) for one in found)
    except (TypeError, KeyError, ValueError, AttributeError):
        return ()


def _only(media: Sequence[Any], prompt: str) -> Conversation:
    shown = tuple(_medium(one) for one in media if isinstance(one, Mapping))
    return (Message("user", (*shown, Piece(prompt)) if prompt else shown),) if shown or prompt else ()


def _message(found: Mapping[str, Any], media: Sequence[Any], prompt: str) -> Message:
    return Message(
        role=str(found["role"]),
        content=tuple(_piece(part, media, prompt) for part in found["content"]),
        round=int(found.get("round", 0)),
        after=None if found.get("after") is None else int(found["after"]),
        continues=bool(found.get("continues")),
        call=str(found.get("call", "")),
    )


def _piece(part: Mapping[str, Any], media: Sequence[Any], prompt: str) -> Piece:
    if "input" in part:
        begin, end = part["input"]
        return Piece(prompt[begin:end])
    if "media" in part:
        number = part["media"]
        medium = media[number] if isinstance(number, int) and 0 <= number < len(media) else None
        return _medium(medium if isinstance(medium, Mapping) else {}, part.get("frame"))
    if "call" in part:
        return Piece(f"{part['call']['name']} {part['call']['arguments']}", "call")
    return Piece(str(part["text"])) if "text" in part else _medium(part)


def _medium(medium: Mapping[str, Any], frame: int | None = None) -> Piece:
    is_told = len(medium) > 1 or "path" in medium
    return Piece(kind=str(medium.get("type", "image")), medium=medium if is_told else None, frame=frame)
