"""Logs of inspect_ai (``.eval``, ``.json``), through its own library, which gives samples without their messages."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from lmms_eval.api.outcome import Status
from lmms_eval.compare.readers.building import NO_FILTER, Lookups, RepeatedScores, TaskBuilder, id_text
from lmms_eval.compare.readers.contract import Format, Looked
from lmms_eval.compare.readers.result_facts import scale_of
from lmms_eval.compare.runs import Answer, Column, RunRows
from lmms_eval.errors import DataError, UsageError
from lmms_eval.results.run_reader.metadata import metadata_of
from lmms_eval.results.run_reader.sample import finite, plain_text

KIND = "inspect_ai"
_NO_ANSWER = "N"
_WRONG = frozenset({"i", "no", "false"})
"""Texts that the library takes for 0; it takes every text that it does not know for 0 too."""


def is_log(looked: Looked) -> bool:
    if looked.members:
        return bool({"header.json", "_journal/start.json"} & looked.members)
    return {"eval", "status", "version"} <= looked.document.keys()


def read_log(path: Path) -> RunRows:
    """Read a log: one task of one model. Epochs of a sample are one row, with the mean of their scores.

    Raises:
        DataError: the library cannot read the file.
        UsageError: inspect_ai is not installed.
    """
    library = _library(path)
    try:
        log = library.read_eval_log(str(path), header_only=True)
        summaries = library.read_eval_log_sample_summaries(str(path))
    except Exception as error:
        text = " ".join(str(error).split())
        raise DataError(f"{path}: inspect_ai cannot read this log: {type(error).__name__}: {text:.300}") from error
    builder, scores = TaskBuilder(log.eval.task), RepeatedScores()
    builder.states_filter = False
    first: list[Any] = []
    """The first epoch of each row."""
    for summary in summaries:
        row = builder.row(id_text(summary.id))
        if row == len(first):
            first.append(summary)
        builder.end(row, _add(builder, scores, row, summary))
    scores.give(builder)

    def sample(row: int) -> Any:
        return library.read_eval_log_sample(str(path), id=first[row].id, epoch=first[row].epoch)

    def answer(row: int) -> Answer:
        found = sample(row)
        asked = found.input if isinstance(found.input, str) else " ".join(message.text for message in found.input)
        return Answer(found.output.completion, plain_text(found.target), asked)

    def raw(column: str, row: int) -> Any:
        scorer, _, key = column.rpartition(",")[0].partition("/")
        score = (sample(row).scores or {}).get(scorer)
        return None if score is None else score.value.get(key) if key else score.value

    def fields() -> Iterator[tuple[int, Mapping[str, Any]]]:
        return ((row, summary.metadata or {}) for row, summary in enumerate(first))

    rows = builder.rows(Lookups(cache(lambda: metadata_of(len(first), fields())), answer, raw))
    rows = replace(rows, columns={key: _reported(column, log) for key, column in rows.columns.items()})
    notes = builder.notes
    if log.status != "success":
        notes += (f"{log.eval.task}: the log's status is {log.status}",)
    return RunRows(log.eval.model, str(path), KIND, {rows.task: rows}, notes=notes)


def _add(builder: TaskBuilder, scores: RepeatedScores, row: int, summary: Any) -> Status:
    if summary.error is not None and not summary.scores:
        return "failed"
    status: Status = "unscored"
    for scorer, score in (summary.scores or {}).items():
        parts = score.value.items() if isinstance(score.value, Mapping) else [("", score.value)]
        for key, value in parts:
            metric = f"{scorer}/{key}" if key else scorer
            number = _number(value)
            builder.score(row, metric, NO_FILTER, None)
            if number is None:
                reason = getattr(score, "reason", None)
                builder.pass_over(f"values of {metric} that are no number{f' ({reason})' if reason else ''}: unscored")
            else:
                scores.add(row, metric, number)
                status = "scored"
    return status


def _number(value: Any) -> float | None:
    """Take a value for a number as the library does, but nothing for 0 that says no such thing."""
    if not isinstance(value, str):
        return finite(value)
    if value == _NO_ANSWER:
        return None
    try:
        return finite(float(value))
    except ValueError:
        pass
    if value.casefold() in _WRONG:
        return 0.0
    number = finite(_to_float()(value))
    return number or None


@cache
def _to_float() -> Any:
    return importlib.import_module("inspect_ai.scorer").value_to_float()


def _reported(column: Column, log: Any) -> Column:
    """Add the log's own mean of a scorer, where it has one."""
    scorer, _, key = column.metric.partition("/")
    for score in log.results.scores if log.results else ():
        if score.scorer == scorer and score.name == (key or scorer):
            stated = next((score.metrics[name].value for name in ("mean", "accuracy") if name in score.metrics), None)
            if (reported := finite(stated)) is not None:
                known = column.scores[column.scores == column.scores]
                scale = scale_of(float(known.mean()), reported) if len(known) else 0.0
                return replace(column, reported=reported, scale=scale)
    return column


def _library(path: Path) -> ModuleType:
    try:
        return importlib.import_module("inspect_ai.log")
    except ImportError:
        raise UsageError(f'{path}: logs of inspect_ai need its library: pip install "lmms_eval[inspect]"') from None


LOGS = Format("a log of inspect_ai (.eval, or JSON with eval, status, version)", is_log, read_log)
