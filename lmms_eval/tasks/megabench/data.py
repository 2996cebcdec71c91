"""The data of MEGA-Bench: finds rows and media, unpacks the media archive, reads rows.

A row has fifteen text columns. Five hold Python literals.
"""

from __future__ import annotations

import functools
import mimetypes
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from msgspec import Struct

from lmms_eval.errors import DataError
from lmms_eval.tasks._task_utils.documents import once_per_document
from lmms_eval.tasks._task_utils.media_files import copies_below, hf_home, hub_snapshots
from lmms_eval.tasks.megabench.conversions.literals import LiteralError, read_literal

REPOSITORY = "TIGER-Lab/MEGA-Bench"
CONFIGURATIONS = ("core", "open", "core_single_image", "open_single_image")
SPLIT = "test"
DEMO = Path(__file__).parent / "demo"
"""The demonstration, in the layout of the data set with only the configuration ``core``."""
ARCHIVE = "data.zip"
ARCHIVE_SIZE = "9.15 GB"
ARCHIVE_MD5 = "5ec01ab69cd25b643c4f5e1396e96441"
MEDIA_FOLDER = "megabench_data"
_TOP = "data"

Kind = Literal["image", "video", "mixed"]

COLUMNS = (
    "id", "task_name", "task_description", "global_media", "example_text", "example_media", "query_text",
    "query_media", "answer", "metric_info", "eval_context", "taxonomy_tree_path", "application", "input_format",
    "output_format",
)  # fmt: skip
_MEDIA_COLUMNS = ("global_media", "example_media", "query_media")
_TYPES = mimetypes.MimeTypes()  # the built-in table only: the same on every machine


def load_rows(configuration: str, data_root: str | Path | None = None) -> list[dict[str, Any]]:
    """Load all rows of a configuration, in order: from a local copy (``--data_root``), else from the hub.

    A local copy holds ``<configuration>/*.parquet``, directly or below ``TIGER-Lab/MEGA-Bench`` or ``MEGA-Bench``.
    Raises ``DataError`` if the configuration is unknown, or the data cannot be found or read.
    """
    if configuration not in CONFIGURATIONS:
        raise DataError(f"MEGA-Bench has no configuration {configuration!r}; use one of {', '.join(CONFIGURATIONS)}")
    from lmms_eval.tasks.data.splits import DataRequest, open_data

    root = None if data_root is None else str(data_root)
    request = DataRequest(REPOSITORY, configuration, {}, f"MEGA-Bench, configuration {configuration}", root)
    documents = open_data(request, SPLIT).documents(SPLIT)
    places = range(len(documents))
    if not places:
        return []
    # By column: reading cell by cell takes thirty times as long.
    columns = [documents.source.cells(name, places).to_pylist() for name in documents.columns]
    return [dict(zip(documents.columns, row, strict=True)) for row in zip(*columns, strict=True)]


def media_root(data_root: str | Path | None = None) -> Path:
    """Find the folder that holds ``data/`` with the pictures and videos.

    It is searched below ``data_root`` if given, then in ``$HF_HOME/megabench_data`` (which may be a symbolic link to an
    unpacked copy; it is never replaced). If only the archive ``data.zip`` is found, in one of these or in the hub's
    cache, it is unpacked into ``$HF_HOME/megabench_data``. Raises ``DataError`` if there are neither media nor the
    archive (the message says what to fetch and where to put it), or the archive is damaged.
    """
    return _media_root(None if data_root is None else str(data_root), str(hf_home()))


@functools.lru_cache(maxsize=32)
def _media_root(data_root: str | None, home: str) -> Path:
    target = Path(home) / MEDIA_FOLDER
    folders = [*([] if data_root is None else copies_below(data_root, REPOSITORY)), target]
    for folder in folders:
        if (folder / _TOP).is_dir():
            return folder.absolute()
    for folder in (*folders, *hub_snapshots(REPOSITORY)):
        if (folder / ARCHIVE).is_file():
            return unpack(folder / ARCHIVE, target).absolute()
    tried = ", ".join(str(folder / _TOP) for folder in folders)
    raise DataError(
        f"the pictures and videos of MEGA-Bench are not there; looked for {tried}. Download {ARCHIVE} ({ARCHIVE_SIZE}, "
        f"MD5 {ARCHIVE_MD5}) from the data set repository {REPOSITORY} (`hf download {REPOSITORY} {ARCHIVE} "
        f"--repo-type dataset`: it is then found and unpacked by itself), or unpack it so that {target / _TOP} exists, "
        f"or give a folder that holds {_TOP}/ with --data_root DIR"
    )


def unpack(archive: Path, target: Path) -> Path:
    """Unpack the media archive so that ``target/data`` exists, complete or not at all; returns ``target``.

    Raises ``DataError`` if the archive is damaged, holds names that lead outside or links, has no top folder ``data/``,
    or does not fit on the disk.
    """
    from lmms_eval.tasks._task_utils.archives import alone, rename, unpacked

    with alone(target), unpacked(archive, target, f"its MD5 must be {ARCHIVE_MD5}") as folder:
        if not (folder / _TOP).is_dir():
            raise DataError(f"{archive} has no top folder {_TOP}/: is it the archive of {REPOSITORY}?")
        if not (target / _TOP).is_dir():  # otherwise another process has finished first
            rename(folder / _TOP, target / _TOP)
    return target


class PromptSegment(Struct, frozen=True):
    """One of the three texts of a prompt with the media of its placeholders."""

    text: str
    media: tuple[str, ...]
    """Paths as the data set writes them (``./data/...``)."""


class QueryRow(Struct, frozen=True):
    """A query with its task's description and demonstration."""

    id: str
    """Running number, unique inside a configuration."""
    task_name: str
    description: PromptSegment
    """Text and media that all queries of the task share."""
    example: PromptSegment
    """The demonstration; empty for tasks without one."""
    query: PromptSegment
    answer: Mapping[str, Any]
    """Reference answers by field."""
    answer_text: str
    """The unchanged ``answer`` column."""
    metric_info: Any
    """The unchanged column; see ``parse_task_spec``."""
    eval_context: Any
    """The unchanged column; see ``read_context``."""

    media: tuple[str, ...]
    """All paths in the order of the prompt: description, demonstration, query."""
    kind: Kind
    """``video`` if every file is one, ``mixed`` if some are, else ``image`` (also without any media)."""

    @property
    def segments(self) -> tuple[PromptSegment, PromptSegment, PromptSegment]:
        return self.description, self.example, self.query


def is_video(path: str) -> bool:
    """Return whether a file name is that of a video."""
    guessed = _TYPES.guess_type(path)[0]
    return guessed is not None and guessed.startswith("video")


@once_per_document
def parse_row(doc: Mapping[str, Any]) -> QueryRow:
    """Read a document of the data set.

    Raises ``DataError`` if a column is missing, is no Python literal where it should be, or names a path outside
    ``./data/``; the message names the row and the column.
    """
    where = f"MEGA-Bench row {doc.get('id')!r} of task {doc.get('task_name')!r}"
    missing = [column for column in COLUMNS[:11] if doc.get(column) is None]
    if missing:
        raise DataError(f"{where}: no column {', '.join(missing)}: is this the MEGA-Bench data set?")
    values: dict[str, Any] = {}
    for column in ("answer", *_MEDIA_COLUMNS):
        try:
            values[column] = read_literal(doc[column]) if isinstance(doc[column], str) else doc[column]
        except LiteralError as error:
            raise DataError(f"{where}: column {column} is no Python literal: {error}") from error
    if not isinstance(values["answer"], Mapping):
        raise DataError(f"{where}: column answer must be a mapping of fields")
    for column in _MEDIA_COLUMNS:
        paths = values[column]
        if not isinstance(paths, list | tuple) or not all(isinstance(item, str) for item in paths):
            raise DataError(f"{where}: column {column} must be a list of paths")
        for path in paths:
            pure = PurePosixPath(path)
            if pure.is_absolute() or ".." in pure.parts or "\\" in path or "\0" in path:
                raise DataError(f"{where}: column {column} names {path!r}, which is outside the media folder")
    shared, example, query = (tuple(values[column]) for column in _MEDIA_COLUMNS)
    media = shared + example + query
    videos = [is_video(path) for path in media]
    return QueryRow(
        id=str(doc["id"]),
        task_name=str(doc["task_name"]),
        description=PromptSegment(str(doc["task_description"]), shared),
        example=PromptSegment(str(doc["example_text"]), example),
        query=PromptSegment(str(doc["query_text"]), query),
        answer=values["answer"],
        answer_text=str(doc["answer"]),
        metric_info=doc["metric_info"],
        eval_context=doc["eval_context"],
        media=media,
        kind="image" if not any(videos) else "video" if all(videos) else "mixed",
    )
