"""The judge's view of a sample: text with numbered pictures, cut and skipped as in the benchmark (specification §4).

A ``View`` records everything that is cut, left out or skipped.
"""

from __future__ import annotations

import math
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


Piece = str | ViewedPicture
Find = Callable[[Any], ViewedPicture | str]
"""Returns the picture for the judge from a segment's picture, or the name of a missing picture."""


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

    def find(image: Any) -> ViewedPicture | str:
        paths = [os.path.join(root, str(image)) for root in (folder, further) if root is not None]
        return next((ViewedPicture(path) for path in paths if os.path.exists(path)), paths[0])

    return find


def build_view(
    question: Sequence[Segment], answer: Sequence[Segment], find: Find, options: ViewOptions | None = None
) -> View:
    """Build the judge's view of a question and an answer.

    In the official mode the answer ends at the third picture of both, except for the text of its first segment.
    """
    options = options or ViewOptions()
    is_official = options.mode == "official"
    missing: list[str] = []
    n_images = lost_texts = lost_images = 0

    def shown(segments: Sequence[Segment], limit: float, has_end: bool) -> tuple[Piece, ...]:
        nonlocal n_images, lost_texts, lost_images
        pieces: list[Piece] = []
        for number, segment in enumerate(segments):
            is_over = has_end and number > 0 and n_images >= ANSWER_STOP
            if segment.text is not None:
                lost_texts += is_over
                pieces += [] if is_over else [f"{segment.text}\n"]
            found = None if segment.image is None else find(segment.image)
            if is_over or n_images >= limit:
                lost_images += isinstance(found, ViewedPicture)
            elif isinstance(found, str):
                missing.append(found)
            elif found is not None:
                pieces += [f"Image-{n_images}: ", found, "\n"]
                n_images += 1
        return tuple(pieces)

    return View(
        question_pieces=shown(question, math.inf if is_official else options.max_images, False),
        answer_pieces=shown(answer, ANSWER_STOP, is_official),
        missing=tuple(missing),
        lost_texts=lost_texts,
        lost_images=lost_images,
        is_skipped=is_official and n_images > options.max_images,
    )
