"""Rearrangements of a conversation that families' arguments ask for, before it is rendered."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lmms_eval.api.messages import ChatContent, ChatImageContent, ChatMessage, ChatTextContent

_MARK = re.compile(r"<image ?(\d+)>")


def interleave(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Each picture at the first ``<image N>`` (or ``<imageN>``) that names it within its message.

    Pictures count from 1. Those that no text names stay where they are, and so does every mark without a picture.
    """
    return [ChatMessage(role=message.role, content=_interleaved(message.content)) for message in messages]


def _interleaved(content: Sequence[ChatContent]) -> list[ChatContent]:
    images = [part for part in content if isinstance(part, ChatImageContent)]
    texts = [part.text for part in content if isinstance(part, ChatTextContent)]
    named = {int(number) for text in texts for number in _MARK.findall(text)} & set(range(1, len(images) + 1))
    moved = [images[number - 1] for number in named]
    left = set(named)
    result: list[ChatContent] = []
    for part in content:
        if isinstance(part, ChatTextContent):
            result += _with_images(part.text, images, left)
        elif not any(part is image for image in moved):
            result.append(part)
    return result


def _with_images(text: str, images: Sequence[ChatImageContent], left: set[int]) -> list[ChatContent]:
    """``text`` cut at the marks whose pictures have not been placed yet; those are taken out of ``left``."""
    result: list[ChatContent] = []
    start = 0
    for mark in _MARK.finditer(text):
        number = int(mark.group(1))
        if number not in left:
            continue
        left.discard(number)
        if mark.start() > start:
            result.append(ChatTextContent(text=text[start : mark.start()]))
        result.append(images[number - 1])
        start = mark.end()
    if start < len(text) or not result:
        result.append(ChatTextContent(text=text[start:]))
    return result


def append_prompt(messages: Sequence[ChatMessage], prompt: str) -> list[ChatMessage]:
    """``prompt`` behind the last text of the user's last message."""
    result = list(messages)
    for place in reversed(range(len(result))):
        if result[place].role != "user":
            continue
        content = list(result[place].content)
        last = max((i for i, part in enumerate(content) if isinstance(part, ChatTextContent)), default=None)
        found = content[last] if last is not None else None
        if last is not None and isinstance(found, ChatTextContent):
            content[last] = ChatTextContent(text=found.text + prompt)
        else:
            content.append(ChatTextContent(text=prompt))
        result[place] = ChatMessage(role="user", content=content)
        return result
    return result
