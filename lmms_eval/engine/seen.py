"""Media of a task's documents as a model saw them: pictures, frames, sizes, tokens; minimum, median and maximum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PER_DOCUMENT = ("pictures", "videos", "frames", "sounds", "tokens")
"""Counts of each document that has media."""
PER_MEDIUM = ("width", "height", "processed_width", "processed_height", "fps")
"""Of each picture and video."""


@dataclass(slots=True)
class SeenMedia:
    """Counts of the values over a task's documents; memory holds each different value once."""

    documents: int = 0
    """Documents with media, as far as back ends report them."""
    values: dict[str, Counter[float]] = field(default_factory=dict)

    def __add__(self, other: SeenMedia) -> SeenMedia:
        """Join the counts of two tasks."""
        both = dict.fromkeys((*self.values, *other.values))
        none: Counter[float] = Counter()
        return SeenMedia(
            self.documents + other.documents,
            {name: self.values.get(name, none) + other.values.get(name, none) for name in both},
        )

    def add(self, answers: Sequence[Mapping[str, Any]]) -> None:
        """Add a document: the media of its first answer that tells of any, in the form of the journal."""
        media = next((answer["media"] for answer in answers if answer.get("media")), None)
        if not media:
            return
        self.documents += 1
        for name, value in (*_of_document(media), *(pair for medium in media for pair in _of_medium(medium))):
            self.values.setdefault(name, Counter())[value] += 1

    def summary(self) -> dict[str, Any]:
        """Return minimum, median and maximum of each quantity; empty without media."""
        if not self.documents:
            return {}
        named = (name for name in (*PER_DOCUMENT, *PER_MEDIUM) if name in self.values)
        return {"documents": self.documents, **{name: spread(self.values[name]) for name in named}}


def spread(values: Counter[float]) -> dict[str, float]:
    """Return minimum, median and maximum of counted values."""
    ordered = sorted(values)
    middle = (values.total() - 1) / 2
    low, high = (_at(ordered, values, int(place)) for place in (middle, middle + 0.5))
    median = low if low == high else (low + high) / 2
    return {"min": ordered[0], "median": median, "max": ordered[-1]}


def _at(ordered: Sequence[float], values: Counter[float], place: int) -> float:
    """The value at a place of the sorted list of all values, from 0."""
    for value in ordered:
        place -= values[value]
        if place < 0:
            return value
    return ordered[-1]


def _of_document(media: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, float]]:
    kinds = Counter(medium["type"] for medium in media)
    for name, kind in (("pictures", "image"), ("videos", "video"), ("sounds", "audio")):
        if kinds[kind]:
            yield name, kinds[kind]
    if frames := sum(len(medium.get("frames", ())) for medium in media):
        yield "frames", frames
    visual = [medium for medium in media if medium["type"] != "audio"]
    if visual and all("tokens" in medium for medium in visual):
        yield "tokens", sum(medium["tokens"] for medium in visual)


def _of_medium(medium: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name in ("width", "height", "fps"):
        if medium.get(name) is not None:
            yield name, medium[name]
    for name, value in zip(("processed_width", "processed_height"), medium.get("processed", ()), strict=False):
        yield name, value
