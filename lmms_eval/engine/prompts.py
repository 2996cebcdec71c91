"""Fingerprints of rendered prompts (16 hexadecimal digits), and outlines of their messages for the journal."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from lmms_eval.api.messages import ChatMessages, ChatTextContent
from lmms_eval.api.request import SentMedia, SentMessage, SentPart
from lmms_eval.media.reference import digest
from lmms_eval.media.sent import FRAME, Frame

LEAST_SPAN = 16
"""Minimum length of a text that is recorded as a range of the prompt: shorter ones take no more space themselves."""


class _Medium(Struct, frozen=True):
    """A medium in a message. Consecutive frames of a video share an ``entry``, since they are sent as one medium."""

    kind: str
    entry: int
    """Number of the medium among those of its kind."""
    frame: int | None = None
    """Number of the frame within the entry."""


class Outline(Struct, frozen=True):
    """Messages without their media."""

    messages: tuple[tuple[str, tuple[SentPart | _Medium, ...]], ...]

    def messages_with(self, sent: Sequence[SentMedia]) -> tuple[SentMessage, ...]:
        """Return the messages with the numbers of their media.

        Media of a kind are left without numbers if more or fewer of them were sent than the messages contain.

        Args:
            sent: the media that preparation noted, in order.
        """
        numbers = {medium: number for number, medium in enumerate(dict.fromkeys(sent))}
        entries = [part for _, content in self.messages for part in content if isinstance(part, _Medium)]
        found: dict[str, list[int]] = {}
        for kind in {entry.kind for entry in entries}:
            noted = [numbers[medium] for medium in sent if medium.type == kind]
            if len(noted) == 1 + max(entry.entry for entry in entries if entry.kind == kind):
                found[kind] = noted
        return tuple(SentMessage(role, _parts(content, found)) for role, content in self.messages)


def outline(messages: ChatMessages, context: str) -> Outline | None:
    """Return the outline of messages; ``None`` if they are a single user text that equals ``context``."""
    given = messages.messages
    if len(given) == 1 and given[0].role == "user" and len(given[0].content) == 1:
        only = given[0].content[0]
        if isinstance(only, ChatTextContent) and only.text == context:
            return None
    walk = _Walk(context)
    return Outline(tuple((message.role, tuple(walk.part(part) for part in message.content)) for message in given))


class _Walk:
    """Walks through the messages in order, counts their media and finds their texts in the prompt's text."""

    def __init__(self, context: str) -> None:
        self._context, self._place = context, 0
        self._counts: dict[str, int] = {}
        self._video: SentMedia | None = None
        self._frames = 0

    def part(self, part: Any) -> SentPart | _Medium:
        return self._text(part.text) if isinstance(part, ChatTextContent) else self._medium(part.type, part.url)

    def _text(self, text: str) -> SentPart:
        place = self._context.find(text, self._place) if len(text) >= LEAST_SPAN else -1
        if place < 0:
            return SentPart(text=text)
        self._place = place + len(text)
        return SentPart(span=(place, self._place))

    def _medium(self, kind: str, value: Any) -> _Medium:
        info = getattr(value, "info", None)
        frame = info.get(FRAME) if isinstance(info, dict) else None
        if not isinstance(frame, Frame):  # ``media.sent.note_picture`` joins frames of a video in the same way
            self._video = None
            self._counts[kind] = self._counts.get(kind, 0) + 1
            return _Medium(kind, self._counts[kind] - 1)
        if frame.video != self._video:
            self._video, self._frames = frame.video, 0
            self._counts["video"] = self._counts.get("video", 0) + 1
        self._frames += 1
        return _Medium("video", self._counts["video"] - 1, self._frames - 1)


def _parts(content: Sequence[SentPart | _Medium], found: dict[str, list[int]]) -> tuple[SentPart, ...]:
    """Return the parts with their media; frames of a video without a text in between become one part."""
    parts: list[SentPart] = []
    before: _Medium | None = None
    for piece in content:
        if isinstance(piece, SentPart):
            parts.append(piece)
            before = None
            continue
        known = found.get(piece.kind)
        number = None if known is None else known[piece.entry]
        if before is not None and before.frame is not None and before.entry == piece.entry and piece.kind == "video":
            parts[-1] = SentPart(kind="video", medium=number)
        else:
            parts.append(SentPart(kind=piece.kind, medium=number, frame=piece.frame))
        before = piece
    return tuple(parts)


def text_fingerprint(text: str) -> str:
    """Return the fingerprint of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def message_fingerprint(messages: ChatMessages) -> str:
    """Return a fingerprint of roles, texts and references of media (paths, URLs, mode and size of decoded pictures)."""
    return _fingerprint(messages, _reference)


def content_fingerprint(messages: ChatMessages) -> str:
    """Return a fingerprint of roles, texts and the contents of all media.

    Raises:
        MediaError: a picture, video or sound cannot be read.
    """
    return _fingerprint(messages, digest)


def _fingerprint(messages: ChatMessages, of_media: Callable[[Any], str]) -> str:
    found = hashlib.sha256()
    for message in messages.messages:
        found.update(f"\0{message.role}".encode())
        for part in message.content:
            content = part.text if isinstance(part, ChatTextContent) else of_media(part.url)
            found.update(f"\1{part.type}\2".encode() + content.encode("utf-8", "surrogatepass"))
    return found.hexdigest()[:16]


def _reference(value: Any) -> str:
    if isinstance(value, str):
        return value if len(value) < 4096 else text_fingerprint(value)
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    return f"{getattr(value, 'mode', type(value).__name__)} {getattr(value, 'size', '')}"
