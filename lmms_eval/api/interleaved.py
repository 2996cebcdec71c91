"""Answers of texts and pictures in the form that scoring receives, and recognition of picture files."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lmms_eval.api.request import GeneratedImage, Part, Response
from lmms_eval.errors import MediaError

if TYPE_CHECKING:
    from typing import Self

_GENERATED = {"png": "image/png", "jpg": "image/jpeg", "webp": "image/webp", "gif": "image/gif"}
"""Media types of pictures that a model may make, by the suffix of their format."""
_MARKS = range(0xE000, 0xF900)
"""Private-use characters. One marks the pictures while a function edits the text."""


def media_type_of(data: bytes) -> str | None:
    """Return the media type of a PNG, JPEG, WebP or GIF file by its first bytes; ``None`` for anything else."""
    from lmms_eval.utils.media_types import media_type_in

    found = media_type_in(data)
    return None if found is None else _GENERATED.get(found.suffix)


def generated_image(data: bytes) -> GeneratedImage:
    """Make a picture of a file's bytes. Raises ``MediaError`` if the bytes are not a PNG, JPEG, WebP or GIF file."""
    media_type = media_type_of(data)
    if media_type is None:
        raise MediaError(f"{len(data)} bytes that are no PNG, JPEG, WebP or GIF file")
    return GeneratedImage.from_bytes(data, media_type)


class InterleavedText(str):
    """An answer of texts and pictures. As a string it is the joined texts.

    ``parts`` are the texts and the pictures (``GeneratedImage`` with ``path``) in order. Operations that make a new
    text, such as a regular expression, return a plain ``str``; ``strip()`` without an argument and ``edited`` keep the
    pictures.
    """

    __slots__ = ("parts",)
    parts: tuple[Part, ...]

    def __new__(cls, parts: Sequence[Part]) -> Self:
        made = super().__new__(cls, "".join(part for part in parts if isinstance(part, str)))
        made.parts = tuple(part for part in parts if part != "")
        return made

    def __getnewargs__(self) -> tuple[Sequence[Part]]:  # type: ignore[override]
        return (self.parts,)

    @property
    def images(self) -> tuple[GeneratedImage, ...]:
        return tuple(part for part in self.parts if isinstance(part, GeneratedImage))

    def strip(self, chars: str | None = None) -> str:
        """Remove white space at both ends of the joined text and keep the pictures; with ``chars`` a plain ``str``."""
        if chars is not None:
            return super().strip(chars)
        start = len(self) - len(self.lstrip())
        end = start + len(super().strip())
        place = 0
        kept: list[Part] = []
        for part in self.parts:
            if isinstance(part, str):
                kept.append(part[max(0, start - place) : max(0, end - place)])
                place += len(part)
            else:
                kept.append(part)
        return type(self)(tuple(kept))

    def edited(self, function: Callable[[str], str]) -> str:
        """Apply ``function`` to the text and keep the pictures in the part that it leaves; a plain ``str`` without any.

        The function receives a private-use character with a number in place of each picture. It may only remove text.
        """
        mark = next(chr(code) for code in _MARKS if chr(code) not in self)
        pictures = self.images
        numbers = iter(range(len(pictures)))
        marked = "".join(part if isinstance(part, str) else f"{mark}{next(numbers)}{mark}" for part in self.parts)
        pieces = re.split(f"{mark}(\\d+){mark}", function(marked))
        kept = tuple(piece if place % 2 == 0 else pictures[int(piece)] for place, piece in enumerate(pieces))
        return type(self)(kept) if len(kept) > 1 else pieces[0]


def response_text(response: Response) -> str:
    """Return the text of a response: an ``InterleavedText`` if the response has pictures."""
    return InterleavedText(response.parts) if response.parts else response.text or ""


def cut_parts(parts: Sequence[Part], length: int) -> tuple[Part, ...]:
    """Return the first ``length`` characters of the texts, with the pictures before that position."""
    kept: list[Part] = []
    left = length
    for part in parts:
        if not isinstance(part, str):
            kept.append(part)
            continue
        kept.append(part[:left])
        left -= len(part)
        if left < 0:
            break
    return tuple(kept)
