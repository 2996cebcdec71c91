"""The 699 tasks of the benchmark's workbook, in its order, with their metrics and scores of specialists.

``tasks.tsv`` has a line for each row of the workbook, ``skills.tsv`` the names of the 145 skills, ``metrics.tsv`` the
63 metrics, each under one key: spellings, unit, direction, range, mapping. It does not define how one is computed.
"""

from __future__ import annotations

import csv
import functools
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from msgspec import Struct, convert

from lmms_eval.errors import UnknownNameError

MODALITIES = ("Image", "Video", "Audio", "3D")
"""The modalities of levels 2 to 4."""
LANGUAGE = "NLP"
"""The sheet, and the modality, of the language tasks. They enter level 5 only."""
PARADIGMS = ("comprehension", "generation")
Correction = Literal["", "fraction", "name", "mapped"]
"""The fault in a specialist's published score: it is a percentage but the mapping expects a fraction; its metric has a
spelling that no mapping knows; it is raw but the model's score is mapped.
"""
_FIRST_CJK = 0x2E80


_COLUMNS = {"number": "no", "name": "task", "spelling": "metric", "metric": "key"}
"""Columns of ``tasks.tsv`` whose name is not the field's."""


class TaskFacts(Struct, frozen=True, eq=False, rename=_COLUMNS):
    """A row of the workbook. Each row is one object, so that rows are compared by identity."""

    sheet: str
    modality: str
    paradigm: str
    """``comprehension``, ``generation``, or empty for language."""
    row: int
    """Row in its sheet, from 0."""
    number: int
    """``No`` of the workbook."""
    name: str
    """Name as in the workbook, irregular spaces included."""
    short_name: str
    spelling: str
    """The metric in the workbook's spelling."""
    metric: str
    """The metric's key in ``metrics()``."""
    needs: str
    """Kind of scoring: ``offline-text``, ``offline-array``, ``network``, ``human``, ``llm-judge``, ``unspecified``."""
    skill: str
    """Code of the skill. ``skills()`` has its name."""
    specialist: float
    """The specialist's score as published."""
    correction: Correction
    note: str
    id: str
    """Name of its task without ``general_bench_``."""

    @property
    def sound_specialist(self) -> float:
        """The specialist's unmapped score in the unit that the mapping expects."""
        return self.specialist / 100 if self.correction == "fraction" else self.specialist


@functools.cache
def tasks() -> tuple[TaskFacts, ...]:
    """Return all 699 tasks, in the order of the workbook."""
    found: list[TaskFacts] = []
    rows: dict[str, int] = {}
    for line in read_table("tasks.tsv"):
        is_language = line["modality"] == LANGUAGE  # which has one sheet
        sheet = LANGUAGE if is_language else f"{line['modality']}-{line['paradigm'].capitalize()}"
        rows[sheet] = rows.get(sheet, -1) + 1
        found.append(convert({**line, "sheet": sheet, "row": rows[sheet]}, TaskFacts, strict=False))
    return tuple(found)


@functools.cache
def sheets() -> Mapping[str, tuple[TaskFacts, ...]]:
    """Return the tasks by sheet, in the order of the workbook."""
    found: dict[str, list[TaskFacts]] = {}
    for task in tasks():
        found.setdefault(task.sheet, []).append(task)
    return MappingProxyType({name: tuple(rows) for name, rows in found.items()})


@functools.cache
def skills() -> Mapping[str, str]:
    """Return the names of the 145 skills by code."""
    return MappingProxyType({line["skill"]: line["name"] for line in read_table("skills.tsv")})


@functools.cache
def tasks_by_name() -> Mapping[str, TaskFacts]:
    """Return the tasks by their names in the table's spelling."""
    return MappingProxyType({task.name: task for task in tasks()})


@functools.cache
def folded_tasks() -> Mapping[str, TaskFacts]:
    """Return the tasks by their folded names, which are unique."""
    return MappingProxyType({fold(task.name): task for task in tasks()})


@functools.cache
def tasks_by_id() -> Mapping[str, TaskFacts]:
    """Return the tasks by ``id``."""
    return MappingProxyType({task.id: task for task in tasks()})


def fold(name: str) -> str:
    """Return a task's name without case, spaces, punctuation, full-width forms and the workbook's Chinese remarks."""
    normal = unicodedata.normalize("NFKC", name).casefold()
    return "".join(character for character in normal if character.isalnum() and ord(character) < _FIRST_CJK)


def find_task(name: str) -> TaskFacts:
    """Find the task of a name, without spaces, case and punctuation. Raises ``UnknownNameError`` for no task."""
    # Folding a name is the slowest step of ranking a row, and nearly all names are spelt as in the table.
    task = tasks_by_name().get(name) or folded_tasks().get(fold(name))
    if task is None:
        raise UnknownNameError("task", name, [task.name for task in tasks()])
    return task


def read_table(name: str) -> Iterator[dict[str, str]]:
    """Yield the lines of a table of this folder as dictionaries."""
    with open(Path(__file__).with_name(name), encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)


Unit = Literal["percent", "fraction", "raw"]
Rule = Literal["", "inverse", "tanh", "complement", "symmetric", "opinion"]
"""The rule that maps a value to a score from 0 to 100 (``levels.formulas``). If empty, the value is such a score."""


class Metric(Struct, frozen=True):
    """A canonical metric."""

    key: str
    title: str
    spellings: tuple[str, ...]
    """Spellings of the workbook first, then others in use."""
    unit: Unit
    """Unit of the value in a result table."""
    higher_is_better: bool
    low: float
    """Least possible value, or minus infinity."""
    high: float
    mapping: Rule
    constant: float
    """Constant T of the mapping, or 0."""


@functools.cache
def metrics() -> Mapping[str, Metric]:
    """Return all metrics by key."""
    found: dict[str, Metric] = {}
    for line in read_table("metrics.tsv"):
        values = {
            **line,
            "spellings": line["spellings"].split("; "),
            "higher_is_better": line["direction"] == "higher",
            "low": float(line["low"] or -math.inf),
            "high": float(line["high"] or math.inf),
            "constant": float(line["constant"] or 0),
        }
        found[line["key"]] = convert(values, Metric, strict=False)
    return MappingProxyType(found)


@functools.cache
def _spellings() -> Mapping[str, Metric]:
    found: dict[str, Metric] = {}
    for metric in metrics().values():
        for spelling in (metric.key, *metric.spellings):
            found.setdefault(fold_metric(spelling), metric)
    return MappingProxyType(found)


@functools.cache
def fold_metric(spelling: str) -> str:
    """Return a spelling without case, spaces, hyphens, ``_``, ``@`` and explanations in brackets."""
    normal = unicodedata.normalize("NFKC", spelling).casefold()
    return re.sub(r"\([^)]*\)|[\s_@-]", "", normal)


def find_metric(spelling: str) -> Metric:
    """Find the metric of a spelling. Raises ``UnknownNameError``, with the nearest spellings, if no metric has it."""
    metric = _spellings().get(fold_metric(spelling))
    if metric is None:
        known = [one for metric in metrics().values() for one in (metric.key, *metric.spellings)]
        raise UnknownNameError("metric", spelling, known)
    return metric
