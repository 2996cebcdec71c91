"""Fingerprints of rendered prompts (16 hexadecimal digits), and outlines of their messages for the journal."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

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


Outline: TypeAlias = "tuple[tuple[str, tuple[SentPart | _Medium, ...]], ...]"
"""Messages without their media: role and parts of each."""


def outline(messages: ChatMessages, context: str) -> Outline | None:
    """Return the outline of messages; ``None`` if they are a single user text that equals ``context``."""
    given = messages.messages
    if len(given) == 1 and given[0].role == "user" and len(given[0].content) == 1:
        only = given[0].content[0]
        if isinstance(only, ChatTextContent) and only.text == context:
            return None
    place, number_of_frames = 0, 0
    counts: Counter[str] = Counter()
    video: SentMedia | None = None  # the one that the last medium is a frame of
    outlined = []
    for message in given:
        content: list[SentPart | _Medium] = []
        for part in message.content:
            if isinstance(part, ChatTextContent):
                found = context.find(part.text, place) if len(part.text) >= LEAST_SPAN else -1
                place = place if found < 0 else found + len(part.text)
                content.append(SentPart(text=part.text) if found < 0 else SentPart(span=(found, place)))
                continue
            info = getattr(part.url, "info", None)
            frame = info.get(FRAME) if isinstance(info, dict) else None
            if not isinstance(frame, Frame):  # ``media.sent.note_picture`` joins frames of a video in the same way
                video = None
                counts[part.type] += 1
                content.append(_Medium(part.type, counts[part.type] - 1))
                continue
            if frame.video != video:
                video, number_of_frames = frame.video, 0
                counts["video"] += 1
            number_of_frames += 1
            content.append(_Medium("video", counts["video"] - 1, number_of_frames - 1))
        outlined.append((message.role, tuple(content)))
    return tuple(outlined)


def messages_with(outlined: Outline, sent: Sequence[SentMedia]) -> tuple[SentMessage, ...]:
    """Return the messages of an outline with the numbers of their media, which ``sent`` lists in order.

    Media of a kind are left without numbers if more or fewer of them were sent than the messages contain. Frames of a
    video without a text in between become one part.
    """
    numbers = {medium: number for number, medium in enumerate(dict.fromkeys(sent))}
    entries = [part for _, content in outlined for part in content if isinstance(part, _Medium)]
    found: dict[str, list[int]] = {}
    for kind in {entry.kind for entry in entries}:
        noted = [numbers[medium] for medium in sent if medium.type == kind]
        if len(noted) == 1 + max(entry.entry for entry in entries if entry.kind == kind):
            found[kind] = noted
    made = []
    for role, content in outlined:
        parts: list[SentPart] = []
        before: SentPart | _Medium | None = None
        for piece in content:
            if isinstance(piece, SentPart):
                parts.append(piece)
            else:
                number = found[piece.kind][piece.entry] if piece.kind in found else None
                is_frame = isinstance(before, _Medium) and before.frame is not None and before.entry == piece.entry
                if is_frame and piece.kind == "video":
                    parts[-1] = SentPart(kind="video", medium=number)
                else:
                    parts.append(SentPart(kind=piece.kind, medium=number, frame=piece.frame))
            before = piece
        made.append(SentMessage(role, tuple(parts)))
    return tuple(made)


def text_fingerprint(text: str) -> str:
    """Return the fingerprint of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def content_fingerprint(messages: ChatMessages) -> str:
    """Hash roles, texts and the contents of all media. Raises ``MediaError`` if a medium cannot be read."""
    return message_fingerprint(messages, digest)


def message_fingerprint(messages: ChatMessages, of_medium: Callable[[Any], str] | None = None) -> str:
    """Return a fingerprint of roles, texts and references of media (paths, URLs, mode and size of decoded pictures).

    ``of_medium`` returns what identifies a medium instead of its reference.
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
