"""Estimated costs of documents, from column lengths and file sizes, before any prompt is rendered.

The unit is roughly one token of a prompt. The estimates order documents (costliest first) and compare
requests in size. They are never part of results.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

from lmms_eval.api.messages import AUDIO_SUFFIXES, IMAGE_SUFFIXES, VIDEO_SUFFIXES
from lmms_eval.tasks.data.sizes import has_lists, has_text_lists, has_texts, list_lengths, text_lengths, value_of

if TYPE_CHECKING:
    from lmms_eval.tasks.data import Documents
    from lmms_eval.tasks.data.sizes import Cells, Item

Kind = Literal["image", "audio", "video"]


class TokenScale(Struct, frozen=True):
    """Tokens of one medium: ``fixed + bytes / bytes_per_token``."""

    fixed: float
    bytes_per_token: float
    unknown: float
    """Tokens if the size is unknown, as for a URL or a missing file."""

    def tokens(self, size: float | None) -> float:
        return self.unknown if size is None else self.fixed + size / self.bytes_per_token


BYTES_PER_TOKEN = 4.0
"""In UTF-8: four letters, or one and a third ideographs."""
SCALES: dict[Kind, TokenScale] = {
    # 120 kB, a JPEG of 1024 x 768, is 1,000 patches of 28 x 28 pixels.
    "image": TokenScale(64, 128, 1_000),
    # 32 kB, a second of 16 kHz WAV, is 25 positions of a Whisper encoder.
    "audio": TokenScale(64, 1_280, 800),
    # 32 frames of at least 128 tokens; 10 MB, a minute or more, are twice that. Opening one costs as much as asking.
    "video": TokenScale(4_096, 2_048, 8_192),
}
SAMPLED_ROWS = 128
"""Rows of a window that are read to find out whether a text column names media."""
MAX_LOOKUPS = 16_384
"""Files of a window that are looked up; the rest get the mean. (On a network drive a look-up takes a millisecond.)"""
_TRIES = 16
"""After so many consecutive missing files the rest of a window counts as unknown."""
_MAX_PATH = 1_024
_BASE64_LEAST = 512
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(VIDEO_SUFFIXES, "video"),
    **dict.fromkeys(AUDIO_SUFFIXES, "audio"),
    **dict.fromkeys(IMAGE_SUFFIXES, "image"),
}
"""Kinds of media by the extension of a path or URL."""
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{256}")
_QUOTED = re.compile(r"'([^'\n]*)'|\"([^\"\n]*)\"")
_ADDRESSES = ("http://", "https://")


class CountedMedium(Struct, frozen=True):
    """One medium of a document."""

    kind: Kind
    item: Item


def media_of_text(value: str) -> list[CountedMedium] | None:
    """Return the media that a text cell names: paths, URLs, data URLs, base64, or the text of a list of paths.

    ``None`` means that the text is something else. An empty text or list names no media and gives an empty list.
    """
    text = value.strip() if len(value) <= _MAX_PATH else value
    if text in ("", "[]", "None"):
        return []
    size = len(text) * 0.75  # of base64
    names = [text] if len(text) <= _MAX_PATH and "\n" not in text else []
    if text.startswith("data:") and "," in text[:_MAX_PATH]:
        stated = text[5:10]
        return [CountedMedium("audio" if stated == "audio" else "video" if stated == "video" else "image", size)]
    if text.startswith("["):
        names = [single or double for single, double in _QUOTED.findall(text)]
    elif len(text) >= _BASE64_LEAST and _BASE64.match(text):
        return [CountedMedium("image", size)]
    kinds = [_KINDS.get(name.split("?")[0].rpartition(".")[2].lower()) for name in names]
    found = [CountedMedium(kind, name) for kind, name in zip(kinds, names, strict=True) if kind is not None]
    return found if names and len(found) == len(names) else None


class Files(Struct):
    """Sizes of files below some folders. Each file is looked up once."""

    roots: Callable[[], Iterable[Path]]
    """Called when the first relative path is looked up."""
    _roots: list[Path] | None = None
    _known: dict[str, int | None] = field(default_factory=dict)
    _missing: int = 0
    _found_bytes: float = 0.0
    _found: int = 0

    def new_window(self) -> None:
        self._known = {}  # not cleared: another thread may be looking a file up
        self._missing, self._found, self._found_bytes = 0, 0, 0.0

    def size(self, name: str) -> float | None:
        """Return the bytes of a file; ``None`` for a URL or a missing file."""
        if name.startswith(_ADDRESSES):
            return None
        known = self._known
        if name in known:
            return known[name]
        if self._missing >= _TRIES or len(known) >= MAX_LOOKUPS:
            return self._found_bytes / self._found if self._found else None
        known[name] = size = self._look_up(name)
        if size is None:
            self._missing += 1
        else:
            self._missing, self._found, self._found_bytes = 0, self._found + 1, self._found_bytes + size
        return size

    def _look_up(self, name: str) -> int | None:
        path = Path(name)
        if self._roots is None:
            self._roots = list(self.roots())
        for number, root in enumerate(self._roots):
            try:
                size = (root / path).stat().st_size  # an absolute path replaces the folder
            except (OSError, ValueError):
                continue
            self._roots.insert(0, self._roots.pop(number))  # the next file is probably there too
            return size
        return None


class Costs:
    """Costs of one task's documents.

    Args:
        documents: its evaluated split.
        files: sizes of the files that its columns name.
        has_media: the prompts may hold media; otherwise no column is searched for them.
        new_tokens: tokens of an answer.
        choices: the column that holds lists of choices, or their number; each choice is a request.
    """

    def __init__(
        self, documents: Documents, files: Files, has_media: bool, new_tokens: float = 0.0, choices: str | int = 1
    ) -> None:
        self._documents, self._files = documents, files
        self._has_media, self._new_tokens, self._choices = has_media, new_tokens, choices
        self._known: dict[int, float] = {}

    def of_documents(self, indices: Sequence[int]) -> list[float]:
        """Return the tokens of all requests of each document, and keep them for ``of_request`` until the next call."""
        self._files.new_window()
        prompts = self._prompts(indices)
        self._known = dict(zip(indices, prompts, strict=True))
        if isinstance(self._choices, int):
            return [cost * max(1, self._choices) for cost in prompts]
        cells = self._documents.source.cells(self._choices, indices)
        counts = list_lengths(cells) if has_lists(cells) else [1] * len(indices)
        return [cost * max(1, count) for cost, count in zip(prompts, counts, strict=True)]

    def of_request(self, index: int) -> float:
        """Return the tokens of one request of a document."""
        found = self._known.get(index)
        return self._prompts([index])[0] if found is None else found

    def _prompts(self, indices: Sequence[int]) -> list[float]:
        """Return the tokens of each document's prompt and answer."""
        documents, total = self._documents, [self._new_tokens] * len(indices)
        media: list[list[CountedMedium]] = [[] for _ in indices]
        for name in documents.media_columns if self._has_media else ():
            kind: Kind = "audio" if "'Audio'" in repr(documents.source.features.get(name)) else "image"
            for place, stored in enumerate(documents.source.media(name, indices)):
                media[place] += [CountedMedium(kind, item) for item in stored]
        for name in documents.text_columns:
            cells = documents.source.cells(name, indices)
            named = _media_of_cells(cells) if self._has_media else None
            lengths = text_lengths(cells) if named is None and has_texts(cells) else ()
            for place, length in enumerate(lengths):
                total[place] += length / BYTES_PER_TOKEN
            for place, found in enumerate(named or ()):
                if isinstance(found, list):
                    media[place] += found
                else:
                    total[place] += found / BYTES_PER_TOKEN
        if not self._has_media:
            return total
        if not any(media):  # the task's own functions know where its media are
            return [cost + SCALES["image"].unknown for cost in total]
        for place, items in enumerate(media):
            sizes = [self._files.size(one.item) if isinstance(one.item, str) else one.item for one in items]
            total[place] += sum(SCALES[one.kind].tokens(size) for one, size in zip(items, sizes, strict=True))
        return total


def _media_of_cells(column: Cells) -> list[list[CountedMedium] | int] | None:
    """Return the media of each cell of a column that names media, or the length of a cell that holds other text.

    ``None`` for other columns: not of texts or lists of texts, or some sampled cell holds other text, or none a medium.
    """
    if not (has_texts(column) or has_text_lists(column)):
        return None
    known: dict[int, list[CountedMedium] | None] = {}
    for row in range(0, len(column), max(1, len(column) // SAMPLED_ROWS)):
        known[row] = _media_of_cell(value_of(column, row))
        if known[row] is None:
            return None
    if not any(known.values()):
        return None
    made: list[list[CountedMedium] | int] = []
    for row, value in enumerate(column.to_pylist()):
        media = known[row] if row in known else _media_of_cell(value)
        made.append(len(str(value)) if media is None else media)
    return made


def _media_of_cell(value: str | list[str] | None) -> list[CountedMedium] | None:
    if value is None or isinstance(value, str):
        return media_of_text(value or "")
    parts = [media_of_text(part or "") for part in value]
    return None if None in parts else [medium for part in parts for medium in part or ()]
