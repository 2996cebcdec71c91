"""Batch files in the run's folder, and the journal that tells how far each of them has come.

What a batch holds is written down before its file is sent, the file's id before the batch is created, the batch's id as
soon as it is known. A start after a kill thus knows each batch that may be live, and asks nothing of it again.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import orjson

from lmms_eval.errors import JournalError
from lmms_eval.storage.journal import JournalWriter
from lmms_eval.storage.lines import read_lines

JOURNAL = "batches.jsonl"


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a batch file."""

    requests: int
    bytes: int


@dataclass(slots=True)
class Part:
    """One batch, from its file to its results."""

    name: str
    """Unique: the file's name at the service, and a mark in the batch's metadata."""
    ids: tuple[str, ...]
    """Of its requests, in the order of the file's lines."""
    path: Path
    file_id: str = ""
    batch_id: str = ""
    status: str = ""
    """As the service told last."""

    @property
    def results(self) -> dict[str, Path]:
        """Files of its results while they are taken in, by the names under which the service tells their ids."""
        return {name: self.path.with_suffix(f".{name}") for name in ("output_file_id", "error_file_id")}

    def lines(self, wanted: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """Requests of these ids with their lines. Raises ``JournalError``: the file cannot be read."""
        try:
            with open(self.path, "rb") as file:
                for request_id, line in zip(self.ids, file, strict=True):
                    if request_id in wanted:
                        yield request_id, line
        except (OSError, ValueError) as error:
            raise JournalError(f"cannot read the batch file {self.path}: {error}") from error

    def remove(self) -> None:
        """Remove its files."""
        for path in (self.path, *self.results.values()):
            path.unlink(missing_ok=True)


class Draft:
    """A batch file that is being written: requests go to disk as they come, so that none is held in memory."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.name = f"lmms_eval-{uuid.uuid4().hex}"
        self.path = folder / f"{self.name}.jsonl"
        self.ids: list[str] = []
        self._limits, self._size = limits, 0
        try:
            self._file = open(self.path, "wb")  # noqa: SIM115 - closed by close()
        except OSError as error:
            raise self._unwritable(error) from error

    def has_room(self, line: bytes) -> bool:
        """The line fits beside those that are there."""
        return len(self.ids) < self._limits.requests and self._size + len(line) <= self._limits.bytes

    def add(self, request_id: str, line: bytes) -> None:
        """Raises ``JournalError``: it cannot be written."""
        try:
            self._file.write(line)
        except OSError as error:
            raise self._unwritable(error) from error
        self.ids.append(request_id)
        self._size += len(line)

    def close(self) -> Part:
        """Finish the file. Raises ``JournalError``: it cannot be written."""
        try:
            self._file.close()
        except OSError as error:
            raise self._unwritable(error) from error
        return Part(self.name, tuple(self.ids), self.path)

    def _unwritable(self, error: OSError) -> JournalError:
        return JournalError(f"cannot write the batch file {self.path}: {error.strerror or error}")


class Ledger:
    """The journal of the batches of one run; a context manager.

    Raises:
        JournalError: it cannot be read or written.
    """

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder, self._limits = folder, limits
        self._parts: dict[str, Part] = {}
        self.batch_ids: list[str] = []
        """Batches that were live at the start, or created since."""
        self._journal = JournalWriter(folder / JOURNAL)
        for entry in read_lines(self._journal.path):
            self._apply(entry.record)
        self.batch_ids += [part.batch_id for part in self._parts.values() if part.batch_id]
        for path in folder.glob("lmms_eval-*"):  # drafts, and what a batch that is over has left
            if path.stem not in self._parts:
                path.unlink(missing_ok=True)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._journal.close()

    def parts(self) -> list[Part]:
        """Batches that are not over."""
        return list(self._parts.values())

    def may_hold(self, line: bytes) -> bool:
        """The line alone is not too large for a batch file."""
        return len(line) <= self._limits.bytes

    def draft(self) -> Draft:
        """Begin a batch file."""
        return Draft(self._folder, self._limits)

    def enter(self, part: Part) -> None:
        """Write down what a batch holds, before it is sent."""
        self._parts[part.name] = part
        self._journal.append({"part": part.name, "ids": list(part.ids)})
        self._journal.sync()

    def uploaded(self, part: Part, file_id: str) -> None:
        """Write the file's id down, before the batch is created."""
        part.file_id = file_id
        self._journal.append({"part": part.name, "file_id": file_id})
        self._journal.sync()

    def created(self, part: Part, batch_id: str) -> None:
        """Write the batch's id down."""
        part.batch_id = batch_id
        self.batch_ids.append(batch_id)
        self._journal.append({"part": part.name, "batch_id": batch_id})
        self._journal.sync()

    def over(self, part: Part) -> None:
        """Note that nothing more comes of a batch: its results are taken in, or it was never created."""
        self._journal.append({"part": part.name, "over": True})
        self._parts.pop(part.name, None)
        part.remove()

    def _apply(self, record: dict[str, object]) -> None:
        name = str(record["part"])
        ids = record.get("ids")
        if isinstance(ids, list):
            self._parts[name] = Part(name, tuple(map(str, ids)), self._folder / f"{name}.jsonl")
        part = self._parts.get(name)
        if part is None:
            return
        part.file_id = str(record.get("file_id", part.file_id))
        part.batch_id = str(record.get("batch_id", part.batch_id))
        if "over" in record:
            del self._parts[name]


def batch_line(request_id: str, address: str, body: bytes) -> bytes:
    """Make the line of a request: ``body`` is JSON in one line, ``address`` the path to which it would be posted."""
    head = orjson.dumps({"custom_id": request_id, "method": "POST", "url": address})
    return b"".join((head[:-1], b',"body":', body, b"}\n"))
