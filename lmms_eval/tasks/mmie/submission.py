"""Files of answers to MMIE. A run writes them; ``main.py`` reads and writes them (§3, §7).

A record is a question with a model's answer. The output of ``main.py`` and its temporary file hold each record as the
judge saw it, with the judge's reply as ``gpt_feedback``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from lmms_eval.errors import DataError
from lmms_eval.tasks._task_utils.submissions import write_whole
from lmms_eval.tasks.mmie.data.records import QuestionRecord, Segment, json_kind, needed, read_question, read_segments
from lmms_eval.tasks.mmie.view import View

FEEDBACK = "gpt_feedback"
_CONTENT = ("model", "question", "answer", "gt_answer", "images")


class AnsweredRecord(QuestionRecord, frozen=True, kw_only=True):
    """A question with a model's answer, for a judge."""

    answer: tuple[Segment, ...]
    model: Any
    """Name of the model, copied unchanged."""


class RecordProblem(Struct, frozen=True):
    """A record that cannot be used."""

    position: int
    """Position in the file, from 0."""
    id: Any
    message: str


def read_records(content: Any, where: str) -> tuple[dict[int, AnsweredRecord], list[RecordProblem]]:
    """Read the records of a file of answers by their positions, from 0, and name the unusable ones.

    Raises ``DataError`` if the top level is not a list.
    """
    if not isinstance(content, list):
        raise DataError(f"{where}: a JSON list of records is needed, not {json_kind(content)}")
    records: dict[int, AnsweredRecord] = {}
    problems = []
    for position, entry in enumerate(content):
        try:
            records[position] = read_record(entry)
        except DataError as error:
            name = entry.get("id") if isinstance(entry, Mapping) else None
            problems.append(RecordProblem(position, name, str(error)))
    return records, problems


def read_record(entry: Any) -> AnsweredRecord:
    """Read a question, in either form, with its answer. Raises ``DataError`` if a key is missing, or for no record."""
    question = asdict(read_question(entry))
    answer = read_segments(needed(entry, "answer"), "answer")
    return AnsweredRecord(**question, answer=answer, model=needed(entry, "model"))


def answer_record(doc: Mapping[str, Any], answer: Sequence[Segment]) -> dict[str, Any]:
    """Return a document and its answer as a record of the file that ``main.py`` judges, without the model's name."""
    return {
        "id": doc["id"],
        "question": [dict(segment) for segment in doc["question"]],
        "answer": [{"text": segment.text, "image": segment.image} for segment in answer],
        "gt_answer": [dict(segment) for segment in doc["gt_answer"]],
        "category": doc["category"],
        "field": doc["field"],
        "subfield": doc["subfield"],
    }


def write_answers(records: Iterable[Mapping[str, Any]], model: str, path: Path) -> None:
    """Write the list that ``main.py`` judges. Raises ``DataError``.

    Pictures of questions keep the names of the data set. Those of answers get their path relative to the file.
    """

    def beside(segment: Mapping[str, Any]) -> dict[str, Any]:
        image = segment["image"]
        return {**segment, "image": None if image is None else Path(os.path.relpath(image, path.parent)).as_posix()}

    content = [{**record, "answer": [*map(beside, record["answer"])], "model": model} for record in records]
    write_whole(path, json.dumps(content, indent=1))


def processed_record(record: AnsweredRecord, view: View) -> dict[str, Any]:
    """Return the sample as in ``main.py``'s files, without feedback."""
    return {
        "id": record.id,
        "model": record.model,
        "question": view.question,
        "answer": view.answer,
        "gt_answer": record.reference_text,
        "images": list(view.images),
    }


class OutputText:
    """The text of ``main.py``'s output and temporary file, which is written often. Every record is rendered once."""

    def __init__(self, records: Sequence[Mapping[str, Any]]) -> None:
        self._records = records
        self._texts = [_indented(record) for record in records]

    def judged(self, index: int, feedback: str) -> None:
        """Add the feedback to a record."""
        self._texts[index] = _indented({**self._records[index], FEEDBACK: feedback})

    def snapshot(self) -> Callable[[], bytes]:
        """Return a function that makes the current text of the file: ``json.dumps`` with an indent of 4, ASCII only."""
        texts = tuple(self._texts)
        return lambda: ("[\n" + ",\n".join(texts) + "\n]" if texts else "[]").encode("ascii")


def _indented(record: Mapping[str, Any]) -> str:
    return "    " + json.dumps(record, indent=4).replace("\n", "\n    ")


def feedback_from_temporary(entries: Any, records: Sequence[Mapping[str, Any]]) -> tuple[dict[int, str], int]:
    """Read the feedback of the judged entries at the start of a temporary file, for the records at their positions.

    Returns the feedback (perhaps an empty text) by position, and the number of judged entries that differ from the
    record at their position. Reading ends at the first entry without feedback. An entry counts only for a record with
    the same id and the same content, as far as the entry has any.
    """
    found: dict[int, str] = {}
    mismatches = 0
    for position, entry in enumerate(entries if isinstance(entries, Sequence) else ()):
        if not isinstance(entry, Mapping) or not isinstance(entry.get(FEEDBACK), str):
            break
        record = records[position] if position < len(records) else None
        if (
            record is not None
            and entry.get("id") == record["id"]
            and all(entry[key] == record[key] for key in _CONTENT if key in entry)
        ):
            found[position] = entry[FEEDBACK]
        else:
            mismatches += 1
    return found, mismatches
