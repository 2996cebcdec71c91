"""A row of the data set: fifteen text columns, five of which hold Python literals."""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal

from lmms_eval.errors import DataError
from lmms_eval.tasks._task_utils.documents import once_per_document
from lmms_eval.tasks.megabench.conversions.literals import LiteralError, read_literal

Kind = Literal["image", "video", "mixed"]

COLUMNS = (
    "id", "task_name", "task_description", "global_media", "example_text", "example_media", "query_text",
    "query_media", "answer", "metric_info", "eval_context", "taxonomy_tree_path", "application", "input_format",
    "output_format",
)  # fmt: skip
_TYPES = mimetypes.MimeTypes()  # the built-in table only: the same on every machine


@dataclass(frozen=True, slots=True)
class Segment:
    """One of the three texts of a prompt with the media of its placeholders."""

    text: str
    media: tuple[str, ...]
    """Paths as the data set writes them (``./data/...``)."""


@dataclass(frozen=True, slots=True)
class Row:
    """A query with its task's description and demonstration."""

    id: str
    """Running number, unique inside a configuration."""
    task_name: str
    description: Segment
    """Text and media that all queries of the task share."""
    example: Segment
    """The demonstration; empty for tasks without one."""
    query: Segment
    answer: Mapping[str, Any]
    """Field name -> reference answer."""
    answer_text: str
    """The ``answer`` column as it stands."""
    metric_info: Any
    """The column as it stands; see ``parse_task_spec``."""
    eval_context: Any
    """The column as it stands; see ``read_context``."""

    @property
    def segments(self) -> tuple[Segment, Segment, Segment]:
        return self.description, self.example, self.query

    @property
    def media(self) -> tuple[str, ...]:
        """All paths in the order of the prompt: description, demonstration, query."""
        return self.description.media + self.example.media + self.query.media

    @property
    def kind(self) -> Kind:
        """``video`` if every file is one, ``mixed`` if some are, else ``image`` (also without any media)."""
        videos = [is_video(path) for path in self.media]
        if not any(videos):
            return "image"
        return "video" if all(videos) else "mixed"


def is_video(path: str) -> bool:
    """Whether the file name stands for a video."""
    guessed = _TYPES.guess_type(path)[0]
    return guessed is not None and guessed.startswith("video")


@once_per_document
def parse_row(doc: Mapping[str, Any]) -> Row:
    """Read a document of the data set.

    Raises:
        DataError: a column is missing, is no Python literal where it should be, or names a path outside ``./data/``;
            the message names the row and the column.
    """
    where = f"MEGA-Bench row {doc.get('id')!r} of task {doc.get('task_name')!r}"
    missing = [column for column in COLUMNS[:11] if doc.get(column) is None]
    if missing:
        raise DataError(f"{where}: no column {', '.join(missing)}: is this the MEGA-Bench data set?")
    return Row(
        id=str(doc["id"]),
        task_name=str(doc["task_name"]),
        description=Segment(str(doc["task_description"]), _paths(doc, "global_media", where)),
        example=Segment(str(doc["example_text"]), _paths(doc, "example_media", where)),
        query=Segment(str(doc["query_text"]), _paths(doc, "query_media", where)),
        answer=_answer(doc, where),
        answer_text=str(doc["answer"]),
        metric_info=doc["metric_info"],
        eval_context=doc["eval_context"],
    )


def _literal(doc: Mapping[str, Any], column: str, where: str) -> Any:
    value = doc[column]
    if not isinstance(value, str):
        return value
    try:
        return read_literal(value)
    except LiteralError as error:
        raise DataError(f"{where}: column {column} is no Python literal: {error}") from error


def _paths(doc: Mapping[str, Any], column: str, where: str) -> tuple[str, ...]:
    value = _literal(doc, column, where)
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise DataError(f"{where}: column {column} must be a list of paths")
    for path in value:
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts or "\\" in path or "\0" in path:
            raise DataError(f"{where}: column {column} names {path!r}, which is outside the media folder")
    return tuple(value)


def _answer(doc: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    value = _literal(doc, "answer", where)
    if not isinstance(value, Mapping):
        raise DataError(f"{where}: column answer must be a mapping of fields")
    return value
