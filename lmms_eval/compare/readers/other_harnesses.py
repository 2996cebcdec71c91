"""Formats of other harnesses: EvalScope's reviews, VLMEvalKit's tables, and logs of inspect_ai."""

from __future__ import annotations

import importlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec.structs import replace

from lmms_eval.api.outcome import Status
from lmms_eval.compare.readers.contract import NO_FILTER, FileHead, Format, TaskBuilder, id_text
from lmms_eval.compare.readers.samples import scale_of
from lmms_eval.compare.readers.tables import TableFile, number_of, open_table
from lmms_eval.compare.runs import DocumentTexts, MetricColumn, RunRows, TaskRows
from lmms_eval.errors import DataError, UsageError
from lmms_eval.results.columns import metadata_of
from lmms_eval.results.journals import FileSamples
from lmms_eval.results.sample import finite, plain_text

EVALSCOPE = "evalscope"
_SCORED = frozenset({"success", "fallback", "degraded"})
_FAILED = frozenset({"transport_error", "invalid_session"})
"""Statuses of a score. With all others (``parse_error``, ``excluded``) there is an answer without a score."""


def is_review(head: FileHead) -> bool:
    score = head.record.get("sample_score")
    return "index" in head.record and isinstance(score, Mapping) and "score" in score


def read_reviews(path: Path) -> RunRows:
    """Read one file of reviews: a task of the model that its folder is named after.

    Answers to one document (``group_id``) are one row, with the mean of their scores.

    Raises:
        DataError: the file cannot be read, or a line is not a review.
    """
    name = path.parent.name if path.parent.parent.name == "reviews" else path.stem
    builder, places = TaskBuilder(path.stem), array("q")
    builder.states_filter = False
    lines = FileSamples(path)
    for line in lines.lines():
        try:
            row = builder.row(_document(line.record))
            if row == len(places):
                places.append(line.offset)
            builder.end(row, _add_review(builder, row, line.record["sample_score"]["score"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{path}, line {line.number}: not a review of EvalScope ({error!r})") from error

    def fields() -> Iterator[tuple[int, Mapping[str, Any]]]:
        for row, offset in enumerate(places):
            metadata = lines.at(offset)["sample_score"].get("sample_metadata")
            yield row, metadata if isinstance(metadata, Mapping) else {}

    def answer(row: int) -> DocumentTexts:
        review = lines.at(places[row])
        score = review["sample_score"]["score"]
        text = score.get("prediction") or score.get("extracted_prediction")
        return DocumentTexts(plain_text(text), plain_text(review.get("target")), _prompt(review))

    def raw(column: str, row: int) -> Any:
        return lines.at(places[row])["sample_score"]["score"]["value"].get(column.rpartition(",")[0])

    metadata = cache(lambda: metadata_of(len(places), fields()))
    rows = replace(builder.rows(), metadata=metadata, answer=answer, raw=raw)
    return RunRows(name, str(path), EVALSCOPE, {rows.task: rows}, notes=builder.notes)


def _document(review: Mapping[str, Any]) -> str:
    """Return the document's id: answers to one document share a group; older files have only a number."""
    score = review["sample_score"]
    found = (score.get("group_id"), score.get("sample_id"), review["index"])
    return id_text(next((value for value in found if value is not None), None))


def _add_review(builder: TaskBuilder, row: int, score: Mapping[str, Any]) -> Status:
    stated = score.get("status", "success")
    if stated not in _SCORED:
        builder.pass_over(f"answers with the status {stated!s:.40}")
        return "failed" if stated in _FAILED else "unscored"
    status: Status = "unscored"
    for metric, value in score["value"].items():
        if builder.score_answer(row, metric, finite(value)):
            status = "scored"
        else:
            builder.pass_over(f"values of {metric} that are not finite numbers: unscored")
    return status


def _prompt(review: Mapping[str, Any]) -> str:
    """Return the user's first text, from ``input`` or ``messages``."""
    if isinstance(review.get("input"), str):
        return str(review["input"])
    messages = review.get("messages")
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, Mapping) and message.get("role") == "user":
            return plain_text(message.get("content"))
    return ""


REVIEWS = Format("reviews of EvalScope (JSONL with index, sample_score)", is_review, read_reviews)


VLMEVALKIT = "vlmevalkit"
_SCORES = ("hit", "score", "acc", "accuracy", "correct", "match", "eval_score", "eval_match")
_TEXTS = frozenset({"index", "question", "prediction", "answer", "image", "image_path", "log", "res", "hint", *_SCORES})
"""Columns that do not divide documents."""
_NO_PREDICTION = "Failed to obtain answer via API."
"""The prediction in rows without an answer of the model's server."""


def fits(columns: Sequence[str]) -> bool:
    return {"index", "prediction"} <= set(columns) and any(name in columns for name in _SCORES)


def read_table(path: Path) -> RunRows:
    """Read a table; model and task come from its name (``MODEL_DATASET.xlsx``).

    Raises:
        DataError: the table cannot be read, or a row has no index.
    """
    table = open_table(FileHead(path), fits)
    if table is None:
        raise DataError(f"{path}: no columns index, prediction and hit (or {', '.join(_SCORES[1:])})")
    model, task = names(path)
    builder = TaskBuilder(task)
    builder.states_filter = False
    metrics = [name for name in _SCORES if name in table.columns]
    for row in table.rows():
        index = row.values.get("index", "")
        if not index:
            raise DataError(f"{path}, line {row.line}: no index")
        number = builder.row(index)
        if builder.is_new(number):
            is_answered = _NO_PREDICTION not in row.values.get("prediction", "")
            status: Status = "unscored" if is_answered else "failed"
            for metric in metrics:
                score = finite(number_of(row.values.get(metric, ""))) if is_answered else None
                builder.score(number, metric, NO_FILTER, score)
                if score is not None:
                    status = "scored"
                elif is_answered:
                    builder.pass_over(f"values of {metric} that are not finite numbers: unscored")
            if not is_answered:
                builder.pass_over("questions that the model's server did not answer: failed")
            builder.end(number, status)
        else:
            builder.pass_over("further rows of documents that were there already: the first counts")
    rows = _with_texts(builder.rows(), table, builder)
    return RunRows(model, str(path), VLMEVALKIT, {task: rows}, notes=builder.notes)


def names(path: Path) -> tuple[str, str]:
    """Return the model and dataset of a file's name, which may end with the judge's name.

    The model is the name of a parent folder if the file's name begins with it, else the text before the first
    underscore.
    """
    stem = path.stem.removesuffix("_result").removesuffix("_score")
    above = [folder.name for folder in path.absolute().parents][:3]
    model = next((name for name in above if name and stem.startswith(f"{name}_")), stem.partition("_")[0])
    dataset = stem[len(model) + 1 :].removesuffix("_exact_matching")
    before, _, last = dataset.rpartition("_")
    if before and last[:1].islower():  # names of datasets are in capitals, those of judges (gpt-4o-mini) are not
        dataset = before
    return (model, dataset) if dataset else (path.stem, path.stem)


def _with_texts(rows: TaskRows, table: TableFile, builder: TaskBuilder) -> TaskRows:
    """Add the functions that read the rows' texts on demand."""

    @cache
    def answers() -> dict[int, DocumentTexts]:
        found: dict[int, DocumentTexts] = {}
        for row in table.rows():
            values = row.values
            answer = DocumentTexts(values.get("prediction", ""), values.get("answer", ""), values.get("question", ""))
            found.setdefault(builder.row(values["index"]), answer)
        return found

    def fields() -> Iterator[tuple[int, Mapping[str, str]]]:
        for row in table.rows():
            yield builder.row(row.values["index"]), {k: v for k, v in row.values.items() if k not in _TEXTS}

    metadata = cache(lambda: metadata_of(len(rows.ids), fields()))
    return replace(rows, metadata=metadata, answer=lambda row: answers().get(row))


TABLES = Format(
    "an evaluated table of VLMEvalKit (xlsx, tsv, csv with index, prediction, and hit or score)",
    lambda head: open_table(head, fits) is not None,
    read_table,
)


INSPECT_AI = "inspect_ai"
_NO_ANSWER = "N"
_WRONG = frozenset({"i", "no", "false"})
"""Texts that the library reads as 0, as it also does with texts that it does not know."""


def is_log(head: FileHead) -> bool:
    if head.members:
        return bool({"header.json", "_journal/start.json"} & head.members)
    return {"eval", "status", "version"} <= head.document.keys()


def read_log(path: Path) -> RunRows:
    """Read a log: one task of one model. The epochs of a sample are one row, with the mean of their scores.

    Raises:
        DataError: the library cannot read the file.
        UsageError: inspect_ai is not installed.
    """
    library = _library(path)
    try:
        log = library.read_eval_log(str(path), header_only=True)
        summaries = library.read_eval_log_sample_summaries(str(path))
    except Exception as error:  # inspect_ai raises errors of zip, JSON and validation as they come
        text = " ".join(str(error).split())
        raise DataError(f"{path}: inspect_ai cannot read this log: {type(error).__name__}: {text:.300}") from error
    builder = TaskBuilder(log.eval.task)
    builder.states_filter = False
    first: list[Any] = []
    """The first epoch of each row."""
    for summary in summaries:
        row = builder.row(id_text(summary.id))
        if row == len(first):
            first.append(summary)
        builder.end(row, _add_summary(builder, row, summary))

    def sample(row: int) -> Any:
        return library.read_eval_log_sample(str(path), id=first[row].id, epoch=first[row].epoch)

    def answer(row: int) -> DocumentTexts:
        found = sample(row)
        asked = found.input if isinstance(found.input, str) else " ".join(message.text for message in found.input)
        return DocumentTexts(found.output.completion, plain_text(found.target), asked)

    def raw(column: str, row: int) -> Any:
        scorer, _, key = column.rpartition(",")[0].partition("/")
        score = (sample(row).scores or {}).get(scorer)
        return None if score is None else score.value.get(key) if key else score.value

    def fields() -> Iterator[tuple[int, Mapping[str, Any]]]:
        return ((row, summary.metadata or {}) for row, summary in enumerate(first))

    rows = builder.rows()
    rows = replace(
        rows,
        columns={key: _reported(column, log) for key, column in rows.columns.items()},
        metadata=cache(lambda: metadata_of(len(first), fields())),
        answer=answer,
        raw=raw,
    )
    notes = builder.notes
    if log.status != "success":
        notes += (f"{log.eval.task}: the log's status is {log.status}",)
    return RunRows(log.eval.model, str(path), INSPECT_AI, {rows.task: rows}, notes=notes)


def _add_summary(builder: TaskBuilder, row: int, summary: Any) -> Status:
    if summary.error is not None and not summary.scores:
        return "failed"
    status: Status = "unscored"
    for scorer, score in (summary.scores or {}).items():
        parts = score.value.items() if isinstance(score.value, Mapping) else [("", score.value)]
        for key, value in parts:
            metric = f"{scorer}/{key}" if key else scorer
            if builder.score_answer(row, metric, _number(value)):
                status = "scored"
                continue
            reason = getattr(score, "reason", None)
            builder.pass_over(f"values of {metric} that are not numbers{f' ({reason})' if reason else ''}: unscored")
    return status


def _number(value: Any) -> float | None:
    """Convert a value to a number as the library does, but do not convert unknown texts to 0."""
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


def _reported(column: MetricColumn, log: Any) -> MetricColumn:
    """Add the log's own mean of a scorer, if it has one."""
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
