"""Fingerprints of rendered prompts: 16 hexadecimal digits that tell one from another."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from lmms_eval.api.messages import ChatMessages, ChatTextContent
from lmms_eval.media import digest


def text_fingerprint(text: str) -> str:
    """Hash a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def message_fingerprint(messages: ChatMessages) -> str:
    """Hash roles, texts and references of media (paths and URLs; size and mode of decoded pictures)."""
    return _fingerprint(messages, _reference)


def content_fingerprint(messages: ChatMessages) -> str:
    """Hash roles, texts and the contents of all media.

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
