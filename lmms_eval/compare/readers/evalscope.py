"""Reviews of EvalScope: ``reviews/MODEL/DATASET_SUBSET.jsonl``, a JSON object for each answer."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from lmms_eval.api.outcome import Status
from lmms_eval.compare.readers.building import NO_FILTER, Lookups, RepeatedScores, TaskBuilder, id_text
from lmms_eval.compare.readers.contract import Format, Looked
from lmms_eval.compare.runs import Answer, RunRows
from lmms_eval.errors import DataError
from lmms_eval.results.run_reader.json_lines import LinesAt, read_json_lines
from lmms_eval.results.run_reader.metadata import metadata_of
from lmms_eval.results.run_reader.sample import finite, plain_text

KIND = "evalscope"
_SCORED = frozenset({"success", "fallback", "degraded"})
_FAILED = frozenset({"transport_error", "invalid_session"})
"""Statuses of a score; in all others (``parse_error``, ``excluded``) there is an answer that nothing could score."""


def is_review(looked: Looked) -> bool:
    score = looked.record.get("sample_score")
    return "index" in looked.record and isinstance(score, Mapping) and "score" in score


def read_reviews(path: Path) -> RunRows:
    """Read one file of reviews: a task, of the model after which its folder is called.

    Answers of one document (``group_id``) are one row, with the mean of their scores.

    Raises:
        DataError: the file cannot be read, or a line is no review.
    """
    name = path.parent.name if path.parent.parent.name == "reviews" else path.stem
    builder, scores, places = TaskBuilder(path.stem), RepeatedScores(), array("q")
    builder.states_filter = False
    for line in read_json_lines(path):
        try:
            row = builder.row(_document(line.record))
            if row == len(places):
                places.append(line.offset)
            builder.end(row, _add(builder, scores, row, line.record["sample_score"]["score"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{path}, line {line.number}: not a review of EvalScope ({error!r})") from error
    scores.give(builder)
    lines = LinesAt(path)

    def fields() -> Iterator[tuple[int, Mapping[str, Any]]]:
        for row, offset in enumerate(places):
            metadata = lines.record(offset)["sample_score"].get("sample_metadata")
            yield row, metadata if isinstance(metadata, Mapping) else {}

    def answer(row: int) -> Answer:
        review = lines.record(places[row])
        score = review["sample_score"]["score"]
        said = score.get("prediction") or score.get("extracted_prediction")
        return Answer(plain_text(said), plain_text(review.get("target")), _prompt(review))

    def raw(column: str, row: int) -> Any:
        return lines.record(places[row])["sample_score"]["score"]["value"].get(column.rpartition(",")[0])

    rows = builder.rows(Lookups(cache(lambda: metadata_of(len(places), fields())), answer, raw))
    return RunRows(name, str(path), KIND, {rows.task: rows}, notes=builder.notes)


def _document(review: Mapping[str, Any]) -> str:
    """Find the id: answers of one document share their group; files of older versions have a number only."""
    score = review["sample_score"]
    found = (score.get("group_id"), score.get("sample_id"), review["index"])
    return id_text(next((value for value in found if value is not None), None))


def _add(builder: TaskBuilder, scores: RepeatedScores, row: int, score: Mapping[str, Any]) -> Status:
    stated = score.get("status", "success")
    if stated not in _SCORED:
        builder.pass_over(f"answers with the status {stated!s:.40}")
        return "failed" if stated in _FAILED else "unscored"
    status: Status = "unscored"
    for metric, value in score["value"].items():
        number = finite(value)
        builder.score(row, metric, NO_FILTER, None)
        if number is None:
            builder.pass_over(f"values of {metric} that are no finite number: unscored")
        else:
            scores.add(row, metric, number)
            status = "scored"
    return status


def _prompt(review: Mapping[str, Any]) -> str:
    """Return what the user said first: in ``messages``, or in ``input``."""
    if isinstance(review.get("input"), str):
        return str(review["input"])
    messages = review.get("messages")
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, Mapping) and message.get("role") == "user":
            return plain_text(message.get("content"))
    return ""


REVIEWS = Format("reviews of EvalScope (JSONL with index, sample_score)", is_review, read_reviews)
