"""Add an index of the words that newcomers search for; ``questions.tsv`` maps them to the sections that answer."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).with_suffix(".tsv")
_TITLE = re.compile(r"#{1,4} +(.*?) *$")


@dataclass(frozen=True, slots=True)
class Answer:
    """A section, and the words that people use for its subject."""

    page: str
    anchor: str
    """Anchor of the section; empty for the whole page."""
    words: tuple[str, ...]


def answers() -> Iterator[Answer]:
    """Read ``questions.tsv``."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        for page, anchor, words in csv.reader(file, delimiter="\t"):
            yield Answer(page, anchor, tuple(word.strip() for word in words.split(",")))


def write(source: Path) -> None:
    """Add the entries of the index to the assembled pages."""
    for answer in answers():
        file = source / answer.page
        lines = file.read_text(encoding="utf-8").splitlines()
        place = _place(lines, answer)
        entries = [f"   ! single: {word}" for word in answer.words]
        lines[place:place] = ["", "```{eval-rst}", ".. index::", *entries, "```", ""]
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _place(lines: list[str], answer: Answer) -> int:
    """Return the index of the line before a section's title, so that a result shows it; for a page, the line after."""
    inside = False
    for number, line in enumerate(lines):
        inside ^= line.lstrip().startswith("```")
        title = None if inside else _TITLE.fullmatch(line)
        if title and (not answer.anchor or _slug(title[1]) == answer.anchor):
            return number if answer.anchor else number + 1
    raise SystemExit(f"{TABLE.name}: {answer.page} has no section {answer.anchor!r}")


def _slug(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
