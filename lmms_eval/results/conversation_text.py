"""Conversations as text for a terminal: each message under its role, media by their numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmms_eval.results.run_reader.messages import Conversation, Message, Piece


def conversation_text(messages: Conversation, media: Sequence[Any] = ()) -> str:
    """Write messages one after another; a medium is ``[image 1]``, by its number among ``media`` from 1 on."""
    return "\n\n".join(f"{_heading(message)}\n{_content(message, media)}" for message in messages)


def is_plain(messages: Conversation) -> bool:
    """Tell whether messages are one text of the user, after its media: the prompt says it all."""
    kinds = [piece.kind == "text" for message in messages for piece in message.content]
    return len(messages) < 2 and all(message.role == "user" for message in messages) and kinds == sorted(kinds)


def media_lines(media: Sequence[Any], is_numbered: bool = False) -> Iterator[str]:
    """Describe media as they were sent, a line for each."""
    for number, one in enumerate(media, 1):
        if isinstance(one, Mapping):
            lead = f"{number}. " if is_numbered else ""
            yield f"{lead}{one.get('type', 'medium')}: {_place(one)}{_size(one)}{_times(one)}"


def _heading(message: Message) -> str:
    facts = [f"round {message.round + 1}"] if message.round else []
    if message.after is not None:
        facts.append(f"after the first {message.after} messages alone" if message.after else "sent alone")
    role = f"{message.role} {message.call}" if message.call else message.role
    return f"[{role}{''.join(f', {fact}' for fact in facts)}]"


def _content(message: Message, media: Sequence[Any]) -> str:
    return "".join(piece.text if piece.kind == "text" else _mark(piece, media) for piece in message.content)


def _mark(piece: Piece, media: Sequence[Any]) -> str:
    if piece.kind == "call":
        return f"[{piece.text}]"
    if piece.medium is None:
        return f"[{piece.kind}]"
    number = next((number for number, one in enumerate(media, 1) if one is piece.medium), None)
    name = _place(piece.medium) if number is None else str(number)
    return f"[{piece.kind} {name}{'' if piece.frame is None else f', frame {piece.frame + 1}'}]"


def _place(medium: Mapping[str, Any]) -> Any:
    return medium.get("path") or medium.get("url") or medium.get("name") or medium.get("sha256") or "in memory"


def _size(medium: Mapping[str, Any]) -> str:
    return f", {medium['width']} x {medium['height']}" if "width" in medium and "height" in medium else ""


def _times(medium: Mapping[str, Any]) -> str:
    times = medium.get("times")
    return f", frames at {', '.join(f'{time} s' for time in times)}" if isinstance(times, list) else ""
