"""Documents of a run from records of MMIE, and questions from documents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loguru import logger

from lmms_eval.errors import DataError, MediaError
from lmms_eval.media.policy import MediaPolicy
from lmms_eval.storage.atomic import read_json
from lmms_eval.tasks._task_utils.documents import once_per_document
from lmms_eval.tasks.data.splits import Rows
from lmms_eval.tasks.mmie.data.files import data_file
from lmms_eval.tasks.mmie.data.records import QuestionRecord, Segment, read_question, route
from lmms_eval.tasks.mmie.facts import CATEGORIES, QUESTIONS
from lmms_eval.tasks.mmie.settings import Settings
from lmms_eval.utils.arguments import comma_list

MAX_SHOWN = 3


def documents(name: str | None = None, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> Rows:
    """Return the documents of a category's tag, or all (``dataset_path: !function data.documents.documents``).

    Raises ``DataError`` if the data is missing (the message says how to get it), or holds records that cannot be used.
    """
    settings = Settings.of(lmms_eval_specific_kwargs)
    file = data_file(settings)
    content = read_json(file)
    if not isinstance(content, list):
        raise DataError(f"{file}: a JSON list of records is needed, not a {type(content).__name__}")
    rows = _rows(content, file, settings)
    wanted = [row for row in rows if name is None or row["category"] == name]
    if not wanted:
        raise DataError(f"{file} holds no record of {name or 'any category'}")
    total = sum(QUESTIONS.values())
    if settings.folder is None and len(rows) != total:
        logger.warning("{} holds {} questions, the benchmark has {}: no published number", file, len(rows), total)
    return Rows(wanted, [file])


@once_per_document
def question_of(doc: Mapping[str, Any]) -> QuestionRecord:
    """Read a document as a record of the data set."""
    return read_question(doc)


def _rows(content: list[Any], file: Path, settings: Settings) -> list[dict[str, Any]]:
    rows, problems, odd = [], [], []
    media = MediaPolicy.of("MMIE", [file.parent], comma_list(settings.allow_media))
    for position, entry in enumerate(content):
        try:
            question = read_question(entry)
        except DataError as error:
            problems.append(f"record {position}: {error}")
            continue
        found = route(question.id, question.category, settings.category_by == "name")
        if found.category is None:
            problems.append(f"record {position}: id {question.id!r} does not hold any of {', '.join(CATEGORIES)}")
            continue
        if found.warning:
            odd.append(found.warning)
        if outside := _outside(question, media):
            problems.append(f"record {position}: the picture {outside!r} is outside of the data set's folder")
            continue
        rows.append(
            {
                "id": str(question.id),
                "position": position,
                "category": found.category,
                "field": question.field,
                "subfield": question.subfield,
                "question": _segments(question.question),
                "gt_answer": _segments(question.reference) or [{"text": None, "image": None}],
            }
        )
    if problems:
        raise DataError(f"{file}: {len(problems)} records cannot be used: {_some(problems)}")
    if odd:
        logger.warning("{}: {} records of odd category: {}", file, len(odd), _some(odd))
    return rows


def _outside(question: QuestionRecord, media: MediaPolicy) -> str:
    """Return the first picture that leads out of the data set's folder and is not allowed, or an empty text."""
    for segment in (*question.question, *question.reference):
        name = "" if segment.image is None else str(segment.image)
        if name.startswith("/") or ".." in name.split("/"):
            try:
                media.check_file(str(media.roots[0] / Path(name)))
            except MediaError:
                return name
    return ""


def _segments(segments: tuple[Segment, ...]) -> list[dict[str, str | None]]:
    return [
        {"text": segment.text, "image": None if segment.image is None else str(segment.image)} for segment in segments
    ]


def _some(items: list[str]) -> str:
    return "; ".join(items[:MAX_SHOWN]) + ("; ..." if len(items) > MAX_SHOWN else "")
