"""The interface of a back end that draws pictures from descriptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from lmms_eval.api.request import ErrorKind, GeneratedImage


class DrawingError(Exception):
    """A picture could not be drawn, after all retries."""

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind


class TextToImage(Protocol):
    """A text-to-image model. ``draw`` may be called from several threads at a time, up to ``concurrency``."""

    concurrency: int

    def draw(self, descriptions: Sequence[str], seed: int) -> list[GeneratedImage]:
        """A picture for each description, in order.

        Raises:
            DrawingError: one of them could not be drawn.
        """

    def identity(self) -> Mapping[str, Any]:
        """Everything that determines its pictures: part of the run key."""

    def describe(self) -> Mapping[str, Any]:
        """Describe it for the results."""

    def close(self) -> None:
        """Free what it holds."""
