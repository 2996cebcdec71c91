"""Requests of a word and a small picture at load: what a model cannot do is said before anything is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loguru import logger

from lmms_eval.api.messages import ChatImageContent, ChatMessage, ChatMessages, ChatTextContent
from lmms_eval.models.hf.batching import RECOVERABLE, RefusedError

if TYPE_CHECKING:
    from lmms_eval.models.hf.inputs import Prepared
    from lmms_eval.models.hf.load import Loaded

_SIDE = 64
"""Pixels of the pictures."""
_LONGEST = 160
"""Characters of a reason."""


@dataclass(frozen=True, slots=True)
class DryRequest:
    """One thing that a model is asked to do."""

    name: str
    pictures: int

    def messages(self) -> ChatMessages:
        from PIL import Image

        shades = [Image.new("RGB", (_SIDE, _SIDE), (60 * number, 120, 200)) for number in range(self.pictures)]
        content: list[Any] = [*(ChatImageContent(url=shade) for shade in shades), ChatTextContent(text="What is it?")]
        return ChatMessages(messages=[ChatMessage(role="user", content=content)])


TEXT = DryRequest("text alone", 0)
PICTURE = DryRequest("a picture", 1)
PICTURES = DryRequest("several pictures", 2)


def wants_flat_images(loaded: Loaded, render: Callable[[ChatMessages], Prepared]) -> bool:
    """The processor takes the pictures of a batch as one list, and refuses a list for each prompt.

    Args:
        loaded: model and processor.
        render: gives text and pictures of a conversation.
    """
    try:
        prepared = render(PICTURE.messages())
    except (RefusedError, *RECOVERABLE):
        return False  # asking will tell
    images = list(prepared.images)
    return not _takes(loaded.processor, prepared.text, [images]) and _takes(loaded.processor, prepared.text, images)


def _takes(processor: Any, text: str, images: Sequence[Any]) -> bool:
    try:
        processor(text=[text], images=images, return_tensors="pt", padding=True)
    except RECOVERABLE:
        return False
    return True


def report(model: str, answer: Callable[[DryRequest], object], asked: Sequence[DryRequest]) -> dict[str, str]:
    """Ask each request, and log in one line which ones failed.

    Args:
        model: its name, for the line.
        answer: answers a request, or raises.
        asked: the requests.

    Returns:
        The reason of each failure, by the request's name.
    """
    refused: dict[str, str] = {}
    for request in asked:
        try:
            answer(request)
        except (RefusedError, *RECOVERABLE) as error:
            reason = " ".join(f"{type(error).__name__}: {error}".removeprefix("RefusedError: ").split())
            refused[request.name] = reason if len(reason) <= _LONGEST else reason[:_LONGEST] + "..."
    if refused:
        reasons = "; ".join(f"{name} ({reason})" for name, reason in refused.items())
        logger.warning("{} cannot answer requests of {}", model, reasons)
    return refused
