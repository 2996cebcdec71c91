"""Facts about tasks that their YAML does not hold: documents, modalities, needs, chance level, licence, figures.

The table ``facts.tsv`` holds each fact once. A row is for the task or group of its name, or for all tasks that its
wildcard matches; the most specific row counts. An empty cell means that the sources of the task state nothing.
"""

from __future__ import annotations

import functools
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct

from lmms_eval.config.rules import CONTROLS
from lmms_eval.errors import TaskError
from lmms_eval.utils.arguments import comma_list
from lmms_eval.utils.files import read_table

FACTS = Path(__file__).resolve().parent / "facts.tsv"
MODALITIES = ("text", "image", "video", "audio", "3d")
NO_CONTROL = "none"
"""Cell of a task without a control that makes sense."""
NEEDS = {
    "judge": "a judge (--judge_model)",
    "java": "Java",
    "nltk": "NLTK's data (lmms-eval fetch nltk)",
    "server": "the organisers' server: the split has no reference answers",
    "weights": "weights of networks that score",
}
"""Needs of scoring other than data and packages, with their descriptions."""


class Facts(Struct, frozen=True):
    """A row of the table."""

    name: str
    """Name or wildcard."""
    documents: int | None
    modalities: tuple[str, ...]
    """Modalities of the questions."""
    needs: tuple[str, ...]
    """Needs of every score of the task."""
    uses: tuple[str, ...]
    """Needs of some documents or metrics."""
    chance: str
    """Score of random guessing, in the units of the metric."""
    download: str
    licence: str
    published: str
    """Figures that the authors published."""
    controls: tuple[str, ...] | None = None
    """Controls that make sense (``docs/controls.md``); ``None`` if they follow from modality and choices."""


def facts_of(name: str, is_group: bool = False) -> Facts | None:
    """Look up a task or group; ``None`` without a row. Only a row of its own name describes a group.

    Raises:
        TaskError: the table is damaged.
    """
    exact, patterns = _by_name()
    if is_group or name in exact:
        return exact.get(name)
    return next((row for row in patterns if fnmatchcase(name, row.name)), None)


@functools.cache
def _by_name() -> tuple[dict[str, Facts], tuple[Facts, ...]]:
    """Return the rows by name, and those whose names are wildcards, the longest first."""
    rows = all_facts()
    wildcards = (row for row in rows if any(sign in row.name for sign in "*?["))
    return {row.name: row for row in reversed(rows)}, tuple(sorted(wildcards, key=lambda row: -len(row.name)))


@functools.cache
def all_facts() -> tuple[Facts, ...]:
    """Read the table.

    Raises:
        TaskError: a word is not in ``MODALITIES`` or ``NEEDS``, or a number of documents is not a number.
    """
    found = []
    for row in read_table(FACTS):
        modalities, needs, uses = (comma_list(row[key]) for key in ("modalities", "needs", "uses"))
        unknown = {*modalities} - {*MODALITIES} | {*needs, *uses} - {*NEEDS}
        if unknown or not (row["documents"] or "0").isdecimal():
            raise TaskError(f"{FACTS}: row {row['name']!r}: {', '.join(sorted(unknown)) or row['documents']}: unknown")
        documents = int(row["documents"]) if row["documents"] else None
        texts = {key: row[key] for key in ("chance", "download", "licence", "published")}
        controls = None if not row["controls"] else comma_list(row["controls"].replace(NO_CONTROL, ""))
        if strange := {*(controls or ())} - {*CONTROLS}:
            raise TaskError(f"{FACTS}: row {row['name']!r}: {', '.join(sorted(strange))}: unknown")
        found.append(Facts(row["name"], documents, modalities, needs, uses, **texts, controls=controls))
    return tuple(found)
