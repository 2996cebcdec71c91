"""Choice of a task's measure (the first line of ``measures.tsv`` that fits), and the fingerprint of the scoring code.

Columns: ``metric`` (a key in ``metrics.tsv``), ``sheets`` and ``tasks`` (patterns for the sheet's name and the task's
id), ``form`` (of its items, or ``*``), ``module`` of this package, and the name of the ``measure`` in it. States of an
earlier run are kept only if the fingerprint is unchanged.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.facts import TaskFacts, metrics, tasks
from lmms_eval.tasks.general_bench.items import Form
from lmms_eval.tasks.general_bench.measures.contract import Measure
from lmms_eval.tasks.general_bench.measures.text_math import tokenizer_label
from lmms_eval.utils.files import read_table

_PACKAGES = ("data", "measures", "networks", "nlp", "prompts", "readers")
"""Packages of the benchmark that lead from a reply to its state."""
_CAPTIONS = "metrics/captions.py"
"""Module outside the benchmark that computes states too."""


def scoring_identity(_lmms_eval_specific_kwargs: object = None) -> str:
    """Return the fingerprint of the code that computes states, and of the tokenizer that BLEU uses."""
    return f"{_code()}|{tokenizer_label()}"


@functools.cache
def _code() -> str:
    root, home = Path(__file__).parents[1], Path(__file__).parents[3]
    files = sorted(file for package in _PACKAGES for file in (root / package).iterdir() if file.is_file())
    digest = hashlib.sha256()
    for file in (*files, home / _CAPTIONS):
        digest.update(f"{file.relative_to(home).as_posix()}|{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


class Line(Struct, frozen=True):
    """A line of ``measures.tsv``."""

    metric: str
    sheets: str
    tasks: str
    form: str
    module: str
    measure: str

    def fits(self, facts: TaskFacts, form: Form) -> bool:
        return (
            self.metric == facts.metric
            and fnmatchcase(facts.sheet, self.sheets)
            and fnmatchcase(facts.id, self.tasks)
            and self.form in ("*", form)
        )

    def load(self) -> Measure:
        """Import the module and return the measure."""
        return measures_of(self.module)[self.measure]


@functools.cache
def lines() -> tuple[Line, ...]:
    """Return all lines in order."""
    return tuple(Line(**row) for row in read_table(Path(__file__).with_name("measures.tsv")))


@functools.cache
def measures_of(module: str) -> Mapping[str, Measure]:
    """Return the measures of a module of this package by name."""
    found = importlib.import_module(f"lmms_eval.tasks.general_bench.measures.{module}").MEASURES
    return MappingProxyType({measure.name: measure for measure in found})


def line_for(facts: TaskFacts, form: Form) -> Line:
    """Return the line for a task's items of a form. Raises ``DataError`` if none fits."""
    line = next((line for line in lines() if line.fits(facts, form)), None)
    if line is None:
        raise DataError(f"task {facts.name!r}: no measure of metric {facts.metric!r} for answers of form {form!r}")
    return line


def measure_for(facts: TaskFacts, form: Form) -> Measure:
    """Return the measure for a task's items of a form. Raises ``DataError`` if it is missing."""
    return line_for(facts, form).load()


HEADINGS = ("metric", "tasks", "unit", "better", "measure", "module", "needs", "checked against")


def metric_rows() -> list[tuple[str, ...]]:
    """Return a row for each measure, in the order of the workbook's metrics, with the cells of ``HEADINGS``."""
    rows: list[tuple[str, ...]] = []
    for metric in metrics().values():
        own = [line for line in lines() if line.metric == metric.key]
        count = sum(task.metric == metric.key for task in tasks())
        for place, line in enumerate(own):
            measure = line.load()
            first = place == 0
            rows.append(
                (
                    metric.title if first else "",
                    str(count) if first else "",
                    metric.unit if first else "",
                    ("higher" if metric.higher_is_better else "lower") if first else "",
                    f"`{measure.name}`",
                    f"`{line.module}`",
                    measure.needs or "nothing",
                    measure.checked,
                )
            )
    return rows


def markdown() -> str:
    """Return the table as Markdown."""
    rows = [HEADINGS, tuple("---" for _ in HEADINGS), *metric_rows()]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows)
