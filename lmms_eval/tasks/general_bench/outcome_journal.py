"""Outcomes of a task's items on disk, each under a hash of the item, its prediction and the scoring code."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lmms_eval.storage.lines import JournalWriter, read_lines
from lmms_eval.tasks.general_bench.items import Item
from lmms_eval.tasks.general_bench.measures.contract import Context, Measure
from lmms_eval.tasks.general_bench.measures.registry import scoring_identity
from lmms_eval.tasks.general_bench.readers.sides import MEDIA_FOLDERS
from lmms_eval.tasks.general_bench.scoring import MISSING, ItemOutcome

_LONGEST_PATH = 4096


class OutcomeJournal:
    """A journal (``lmms_eval.storage.lines``) that is opened for writing at the first line. Without a path it is
    disabled.

    Raises:
        JournalError: it cannot be read.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._known: dict[str, ItemOutcome] = {}
        for _, record in () if path is None else read_lines(path):
            with contextlib.suppress(KeyError, TypeError):  # lines of other code: their keys are never asked for
                self._known[record["key"]] = ItemOutcome.from_record(record["outcome"])
        self._writer: JournalWriter | None = None

    def __enter__(self) -> OutcomeJournal:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def __contains__(self, key: str) -> bool:
        return key in self._known

    def __getitem__(self, key: str) -> ItemOutcome:
        return self._known[key]

    def add(self, key: str, outcome: ItemOutcome) -> None:
        """Add a line, except for a failed item, which the next run tries again.

        Raises:
            JournalError: it cannot be written.
        """
        if self.path is None or outcome.status == "failed":
            return
        if self._writer is None:
            self._writer = JournalWriter(self.path)
        self._writer.append({"key": key, "outcome": outcome.as_record()})


def hash_of_scoring(measure: Measure, context: Context, judge: str = "") -> str:
    """Hash the code of the measures, the installed tokenizer, the judge, weights, ratings and options."""
    folders = [context.weights, *(value for value in context.options.values() if isinstance(value, Path))]
    stamps = [_stamp(context.ratings), *map(_stamps, folders)]
    used = f"{context.weights}|{context.ratings}|{stamps}|{sorted(context.options.items())}"
    text = f"{measure.name}|{scoring_identity()}|{judge}|{used}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def key_of(item: Item, prediction: Any, by: str) -> str:
    """Hash the item, its prediction, the files of both, and its scoring."""
    given = None if prediction is MISSING else prediction
    text = json.dumps([item.id, item.raw, given, item.form, str(item.folder), str(item.prediction_folder)], default=str)
    files: list[object] = []
    if item.form not in ("text", "number"):
        files += [_stamp(item.prediction_folder / path.strip()) for path in _paths(given)]
        for path in _paths(item.reference):
            files += [_stamp(item.folder / folder / path.strip()) for folder in MEDIA_FOLDERS]
        files += [_stamp(path) for medium in item.media for path in medium.paths]
    return hashlib.sha256(f"{by}|{text}|{files}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _paths(value: Any) -> Iterator[str]:
    """Yield the texts that may be paths."""
    if isinstance(value, str):
        if 0 < len(value) < _LONGEST_PATH and "\0" not in value:
            yield value
    elif isinstance(value, Mapping | list):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _paths(one)


def _stamps(folder: Path | None) -> object:
    """Return the stamps of a folder and of the folders in it."""
    if folder is None or not folder.is_dir():
        return _stamp(folder)
    return [_stamp(folder), *(_stamp(entry) for entry in sorted(folder.iterdir()) if entry.is_dir())]


def _stamp(path: Path | None) -> object:
    """Return size and time of a file, or those of a folder's entries, or ``None`` if nothing is there."""

    def state(found: os.stat_result) -> tuple[int, int]:
        return found.st_size, found.st_mtime_ns

    try:
        if path is None:
            return None
        if path.is_dir():
            with os.scandir(path) as entries:
                return sorted((entry.name, *state(entry.stat())) for entry in entries)
        return state(path.stat())
    except (OSError, ValueError):
        return None
