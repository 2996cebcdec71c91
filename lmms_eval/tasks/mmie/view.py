"""The judge's view of a sample: text with numbered pictures, cut and skipped as in the benchmark (specification §4).

A ``View`` records everything that is cut, left out or skipped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Literal

from msgspec import Struct

from lmms_eval.tasks.mmie.data.records import Segment

Mode = Literal["official", "full_text"]
MODES: tuple[Mode, ...] = ("official", "full_text")
ANSWER_STOP = 3
"""After so many pictures of question and answer the benchmark ignores the rest of the answer."""
MAX_IMAGES = 4
PLACEHOLDER = "<image>"


class ViewedPicture(Struct, frozen=True):
    """A picture among the texts."""

    value: Any


class Missing(Struct, frozen=True):
    """A missing picture."""

    name: str


Piece = str | ViewedPicture
Find = Callable[[Any], ViewedPicture | Missing]
"""Returns the picture for the judge from a segment's picture."""


class ViewOptions(Struct, frozen=True):
    """The limits for showing a sample."""

    mode: Mode = "official"
    """``official``: the answer ends after the third picture, and samples with too many pictures are skipped.
    ``full_text``: all texts, and pictures up to the same bounds; nothing is skipped.
    """
    max_images: int = MAX_IMAGES
    """Most pictures of a sample."""


class View(Struct, frozen=True):
    """The question and the answer as shown to the judge."""

    question_pieces: tuple[Piece, ...]
    answer_pieces: tuple[Piece, ...]
    missing: tuple[str, ...] = ()
    """Pictures that were not found, in their order."""
    lost_texts: int = 0
    """Number of texts of the answer that are not shown."""
    lost_images: int = 0
    """Number of existing pictures that are not shown."""
    is_skipped: bool = False
    """Whether the sample has too many pictures, so that the benchmark leaves it out."""

    @property
    def question(self) -> str:
        return as_text(self.question_pieces)

    @property
    def answer(self) -> str:
        return as_text(self.answer_pieces)

    @property
    def images(self) -> tuple[Any, ...]:
        return tuple(
            piece.value for piece in (*self.question_pieces, *self.answer_pieces) if not isinstance(piece, str)
        )

    @property
    def is_cut(self) -> bool:
        """Whether a sample is shown only in part."""
        return not self.is_skipped and bool(self.lost_texts or self.lost_images)


def as_text(pieces: Sequence[Piece]) -> str:
    """Join the pieces to one text, with a placeholder for each picture."""
    return "".join(piece if isinstance(piece, str) else PLACEHOLDER for piece in pieces)


def in_folder(folder: str, further: str | None = None) -> Find:
    """Find pictures by paths relative to ``folder``, or absolute, as the benchmark joins them, else in ``further``."""

    def find(image: Any) -> ViewedPicture | Missing:
        path = os.path.join(folder, str(image))
        if not os.path.exists(path) and further is not None:
            other = os.path.join(further, str(image))
            return ViewedPicture(other) if os.path.exists(other) else Missing(path)
        return ViewedPicture(path) if os.path.exists(path) else Missing(path)

    return find


def build_view(
    question: Sequence[Segment], answer: Sequence[Segment], find: Find, options: ViewOptions | None = None
) -> View:
    """Build the judge's view of a question and an answer."""
    options = options or ViewOptions()
    builder = _Builder(find, options)
    shown_question = builder.question(question)
    shown_answer = builder.answer(answer)
    return View(
        question_pieces=tuple(shown_question),
        answer_pieces=tuple(shown_answer),
        missing=tuple(builder.missing),
        lost_texts=builder.lost_texts,
        lost_images=builder.lost_images,
        is_skipped=options.mode == "official" and builder.n_images > options.max_images,
    )


class _Builder:
    """Builds the view of one sample and counts its pictures."""

    def __init__(self, find: Find, options: ViewOptions) -> None:
        self._find, self._options = find, options
        self._is_official = options.mode == "official"
        self.n_images = self.lost_texts = self.lost_images = 0
        self.missing: list[str] = []

    def question(self, segments: Sequence[Segment]) -> list[Piece]:
        limit = None if self._is_official else self._options.max_images
        pieces: list[Piece] = []
        for segment in segments:
            pieces += self._text(segment)
            pieces += self._image(segment, limit)
        return pieces

    def answer(self, segments: Sequence[Segment]) -> list[Piece]:
        """In the official mode everything ends at the third picture, except the text of the first segment."""
        pieces: list[Piece] = []
        for number, segment in enumerate(segments):
            pieces += self._text(segment)
            pieces += self._image(segment, ANSWER_STOP)
            if self._is_official and self.n_images >= ANSWER_STOP:
                self._lose(segments[number + 1 :])
                break
        return pieces

    def _text(self, segment: Segment) -> list[Piece]:
        return [] if segment.text is None else [segment.text + "\n"]

    def _image(self, segment: Segment, limit: int | None) -> list[Piece]:
        if segment.image is None:
            return []
        if limit is not None and self.n_images >= limit:
            self._lose([Segment(None, segment.image)])
            return []
        found = self._find(segment.image)
        if isinstance(found, Missing):
            self.missing.append(found.name)
            return []
        self.n_images += 1
        return [f"Image-{self.n_images - 1}: ", found, "\n"]

    def _lose(self, segments: Sequence[Segment]) -> None:
        for segment in segments:
            self.lost_texts += segment.text is not None
            self.lost_images += segment.image is not None and isinstance(self._find(segment.image), ViewedPicture)
