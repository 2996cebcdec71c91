"""The contract of the readers: a format recognises its files and reads them as runs."""

from __future__ import annotations

import math
import zipfile
from array import array
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lmms_eval.api.outcome import Status
from lmms_eval.compare.runs import MetricColumn, RunRows, TaskRows
from lmms_eval.errors import DataError
from lmms_eval.results.journals import load_json

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray


NO_FILTER = "none"
"""Pipeline name for runs that do not name pipelines."""
_STATUSES: tuple[Status, ...] = ("scored", "unscored", "failed")
"""In order of precedence, if a document has several lines."""
_ABSENT = len(_STATUSES)


def id_text(value: Any) -> str:
    """Return the text of a document's id. Raises ``TypeError`` if the value is not an id."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise TypeError(f"not an id of a document: {value!r:.80}")
    return str(value)


class TaskBuilder:
    """Builder of a task's rows; documents are added in the order of the file."""

    def __init__(self, task: str) -> None:
        self.task = task
        self.states_filter = True
        self.ids: list[str] = []
        self._rows: dict[str, int] = {}
        self._statuses = bytearray()
        self._hashes: dict[int, str] = {}
        self._clusters: dict[int, str] = {}
        self._columns: dict[tuple[str, str], array[float]] = {}
        self._answers: dict[tuple[str, int], list[float]] = {}
        self._passed_over: Counter[str] = Counter()

    def row(self, doc_id: str) -> int:
        """Return the index of a document's row, adding a row for a new document."""
        number = self._rows.setdefault(doc_id, len(self.ids))
        if number == len(self.ids):
            self.ids.append(doc_id)
            self._statuses.append(_ABSENT)
        return number

    def is_new(self, row: int) -> bool:
        """Return whether the row has no status yet."""
        return self._statuses[row] == _ABSENT

    def forget(self, row: int) -> None:
        """Clear a document's row, before it is read again."""
        self._statuses[row] = _ABSENT
        self._hashes.pop(row, None)
        self._clusters.pop(row, None)
        for scores in self._columns.values():
            if row < len(scores):
                scores[row] = math.nan

    def end(self, row: int, status: Status) -> None:
        """Set the document's status. ``scored`` takes precedence over ``unscored``, and that over ``failed``."""
        self._statuses[row] = min(self._statuses[row], _STATUSES.index(status))

    def score(self, row: int, metric: str, pipeline: str, number: float | None) -> None:
        """Set a number; the first one of a document counts. ``None`` only adds the column."""
        scores = self._columns.get((metric, pipeline))
        if scores is None:
            scores = self._columns[metric, pipeline] = array("d")
        if number is None:
            return
        if len(scores) <= row:
            scores.extend([math.nan] * (row - len(scores)))
            scores.append(number)
        elif math.isnan(scores[row]):
            scores[row] = number

    def score_answer(self, row: int, metric: str, number: float | None) -> bool:
        """Add the number of one of a document's answers, whose mean counts. Return whether the answer has a number."""
        self.score(row, metric, NO_FILTER, None)
        if number is not None:
            self._answers.setdefault((metric, row), []).append(number)
        return number is not None

    def describe(self, row: int, doc_hash: str | None, cluster: str | None) -> None:
        if doc_hash:
            self._hashes.setdefault(row, doc_hash)
        if cluster is not None:
            self._clusters.setdefault(row, cluster)

    def pass_over(self, reason: str) -> None:
        """Count something that is left out, by reason."""
        self._passed_over[reason] += 1

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about what was left out."""
        return tuple(f"{self.task}: {reason} ({count})" for reason, count in self._passed_over.items())

    def rows(self) -> TaskRows:
        """Return the rows, without the functions that read on demand."""
        for (metric, row), numbers in self._answers.items():
            self.score(row, metric, NO_FILTER, math.fsum(numbers) / len(numbers))
        columns = {
            f"{metric},{pipeline}": MetricColumn(
                metric, pipeline, self._padded(scores), states_filter=self.states_filter
            )
            for (metric, pipeline), scores in self._columns.items()
        }
        count = range(len(self.ids))
        return TaskRows(
            task=self.task,
            ids=self.ids,
            statuses=[_STATUSES[min(code, 1)] if code == _ABSENT else _STATUSES[code] for code in self._statuses],
            columns=columns,
            hashes=[self._hashes.get(row) for row in count] if self._hashes else None,
            clusters=[self._clusters.get(row) for row in count] if self._clusters else None,
        )

    def _padded(self, scores: array[float]) -> NDArray[float64]:
        import numpy as np

        found = np.full(len(self.ids), np.nan)
        found[: len(scores)] = scores
        return found


LONGEST_LINE = 1 << 26
"""Most bytes of a first line: no known format has longer ones."""


class FileHead:
    """The beginning of a file, which shows its format."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def first_line(self) -> bytes:
        """The first line that is not blank. Raises ``DataError`` if the file cannot be read."""
        try:
            with open(self.path, "rb") as file:
                while line := file.readline(LONGEST_LINE):
                    if line.strip():
                        return line
        except OSError as error:
            raise DataError(f"{self.path} cannot be read: {error.strerror or error}") from error
        return b""

    @cached_property
    def record(self) -> dict[str, Any]:
        """The JSON object in the first line; empty if the line is not one."""
        return _object(self.first_line)

    @cached_property
    def document(self) -> dict[str, Any]:
        """The JSON object in the first line, else in the whole file; empty if neither is one."""
        if self.record or not self.first_line.lstrip().startswith(b"{"):
            return self.record
        try:
            return _object(self.path.read_bytes())
        except OSError as error:
            raise DataError(f"{self.path} cannot be read: {error.strerror or error}") from error

    @cached_property
    def members(self) -> frozenset[str]:
        """Names of the files in a zip archive; empty if the file is not an archive."""
        if not self.first_line.startswith(b"PK"):
            return frozenset()
        try:
            with zipfile.ZipFile(self.path) as archive:
                return frozenset(archive.namelist())
        except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
            return frozenset()


class Format(Struct, frozen=True):
    """A format of runs."""

    needs: str
    """Description of its files, for the error message about unknown ones."""
    is_this: Callable[[FileHead], bool]
    read: Callable[[Path], RunRows]
    """Reads a file. Raises ``DataError`` or ``UsageError``. The run's name need not be unique."""


def _object(data: bytes) -> dict[str, Any]:
    try:
        found = load_json(data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
