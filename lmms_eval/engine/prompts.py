"""Fingerprints of rendered prompts (16 hexadecimal digits), and outlines of their messages for the journal."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct, field

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
    place, media = 0, _MediaCount()
    outlined = []
    for message in given:
        content: list[SentPart | _Medium] = []
        for part in message.content:
            if not isinstance(part, ChatTextContent):
                content.append(media.count(part.type, part.url))
                continue
            found = context.find(part.text, place) if len(part.text) >= LEAST_SPAN else -1
            if found < 0:
                content.append(SentPart(text=part.text))
            else:
                place = found + len(part.text)
                content.append(SentPart(span=(found, place)))
        outlined.append((message.role, tuple(content)))
    return Outline(tuple(outlined))


class _MediaCount(Struct):
    """Numbers the media of messages in order."""

    counts: dict[str, int] = field(default_factory=dict)
    video: SentMedia | None = None
    """The video that the last medium is a frame of."""
    frames: int = 0

    def count(self, kind: str, value: Any) -> _Medium:
        info = getattr(value, "info", None)
        frame = info.get(FRAME) if isinstance(info, dict) else None
        if not isinstance(frame, Frame):  # ``media.sent.note_picture`` joins frames of a video in the same way
            self.video = None
            self.counts[kind] = self.counts.get(kind, 0) + 1
            return _Medium(kind, self.counts[kind] - 1)
        if frame.video != self.video:
            self.video, self.frames = frame.video, 0
            self.counts["video"] = self.counts.get("video", 0) + 1
        self.frames += 1
        return _Medium("video", self.counts["video"] - 1, self.frames - 1)


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


def content_fingerprint(messages: ChatMessages) -> str:
    """Return a fingerprint of roles, texts and the contents of all media.

    Raises:
        MediaError: a picture, video or sound cannot be read.
    """
    return message_fingerprint(messages, digest)


def message_fingerprint(messages: ChatMessages, of_medium: Callable[[Any], str] | None = None) -> str:
    """Return a fingerprint of roles, texts and references of media (paths, URLs, mode and size of decoded pictures).

    Args:
        messages: the messages.
        of_medium: returns what identifies a medium instead of its reference.
    """
    of_medium = of_medium or _reference
    found = hashlib.sha256()
    for message in messages.messages:
        found.update(f"\0{message.role}".encode())
        for part in message.content:
            content = part.text if isinstance(part, ChatTextContent) else of_medium(part.url)
            found.update(f"\1{part.type}\2".encode() + content.encode("utf-8", "surrogatepass"))
    return found.hexdigest()[:16]


def _reference(value: Any) -> str:
    if isinstance(value, str):
        return value if len(value) < 4096 else text_fingerprint(value)
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    return f"{getattr(value, 'mode', type(value).__name__)} {getattr(value, 'size', '')}"
