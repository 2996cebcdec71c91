"""The batches of one run on disk: their requests, their journal and their state."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator
from pathlib import Path
from types import TracebackType

from msgspec import Struct, field

from lmms_eval.errors import JournalError
from lmms_eval.models.remote.errors import AttemptError
from lmms_eval.storage.lines import JournalWriter, read_lines

JOURNAL = "batches.jsonl"
MOST_RESULTS = 2
"""The maximum number of result files of a batch."""


class BatchState(Struct, frozen=True):
    """The state of a batch that the service reported, in the words of all services."""

    status: str
    """One of ``asker.ENDED``, or the service's own word for a live batch."""
    progress: str = ""
    """The state with the number of requests that are done, for the log."""
    results: tuple[str, ...] = ()
    """The service's names of the result files."""
    code: str = ""
    """The reason for a failed batch, a key of ``asker.UNANSWERED``, if the service states one."""
    reason: str = ""
    """The service's message about a failed batch."""


class BatchPart(Struct):
    """One batch, with its files and its state."""

    name: str
    """A unique name, which the service shows in its list of batches, or in the ids of the batch's requests."""
    ids: tuple[str, ...]
    """The ids of its requests, in the order of the file's lines."""
    path: Path
    file_id: str = ""
    """How to look up the batch if its id is unknown: the uploaded file, or the account's newest batch before it."""
    batch_id: str = ""
    is_guess: bool = False
    """Whether the batch was found by its time and size, so that only its results show whether it is this one."""
    refuted: set[str] = field(default_factory=set)
    """Batches that were guessed, and are others."""
    status: str = ""
    """The last status that was logged."""
    state: BatchState = BatchState("")
    since: float = 0.0
    """When it was first polled, by ``time.monotonic``."""
    failed_looks: int = 0
    ended_before: int = 0
    """Batches that had ended before it was first polled."""
    error: AttemptError | None = None
    """The reason why it is given up."""

    @property
    def results(self) -> tuple[Path, ...]:
        """The files of its results while they are read."""
        return tuple(self.path.with_suffix(f".{number}") for number in range(MOST_RESULTS))

    def lines(self, wanted: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the wanted requests with their lines. Raises ``JournalError`` if the file cannot be read."""
        try:
            with open(self.path, "rb") as file:
                for request_id, line in zip(self.ids, file, strict=True):
                    if request_id in wanted:
                        yield request_id, line
        except (OSError, ValueError) as error:
            raise JournalError(f"cannot read the batch file {self.path}: {error}") from error

    def remove(self) -> None:
        """Remove its files."""
        for path in (self.path, *self.results):
            path.unlink(missing_ok=True)


class Draft:
    """A batch file that is being written. Requests go to disk as they arrive, and are not kept in memory."""

    def __init__(self, folder: Path, max_requests: int, max_bytes: int) -> None:
        self.name = f"lmms_eval-{uuid.uuid4().hex}"
        self.path = folder / f"{self.name}.jsonl"
        self.ids: list[str] = []
        self._max_requests, self._max_bytes, self._size = max_requests, max_bytes, 0
        try:
            self._file = open(self.path, "wb")  # noqa: SIM115 - closed by close()
        except OSError as error:
            raise self._unwritable(error) from error

    def has_room(self, line: bytes) -> bool:
        """Return whether there is room for the line."""
        return len(self.ids) < self._max_requests and self._size + len(line) <= self._max_bytes

    def add(self, request_id: str, line: bytes) -> None:
        """Append a line. Raises ``JournalError`` if it cannot be written."""
        try:
            self._file.write(line)
        except OSError as error:
            raise self._unwritable(error) from error
        self.ids.append(request_id)
        self._size += len(line)

    def close(self) -> BatchPart:
        """Finish the file. Raises ``JournalError`` if it cannot be written."""
        try:
            self._file.close()
        except OSError as error:
            raise self._unwritable(error) from error
        return BatchPart(self.name, tuple(self.ids), self.path)

    def _unwritable(self, error: OSError) -> JournalError:
        return JournalError(f"cannot write the batch file {self.path}: {error.strerror or error}")


class Ledger:
    """The journal of the batches of one run; a context manager. Raises ``JournalError`` if the disk fails."""

    def __init__(self, folder: Path, max_requests: int, max_bytes: int) -> None:
        self._folder, self._max_requests, self._max_bytes = folder, max_requests, max_bytes
        self._parts: dict[str, BatchPart] = {}
        self.batch_ids: list[str] = []
        """The batches that were live at the start, or created since."""
        self._journal = JournalWriter(folder / JOURNAL)
        for _, record in read_lines(self._journal.path):
            self._apply(record)
        self.batch_ids += [part.batch_id for part in self._parts.values() if part.batch_id]
        for path in folder.glob("lmms_eval-*"):  # drafts, and files of closed batches
            if path.stem not in self._parts:
                path.unlink(missing_ok=True)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._journal.close()

    def parts(self) -> list[BatchPart]:
        """Return the batches that are not closed."""
        return list(self._parts.values())

    def may_hold(self, line: bytes) -> bool:
        """Return whether the line alone fits into a batch file."""
        return len(line) <= self._max_bytes

    def draft(self) -> Draft:
        """Begin a batch file."""
        return Draft(self._folder, self._max_requests, self._max_bytes)

    def enter(self, part: BatchPart) -> None:
        """Record the requests of a batch, before it is sent."""
        self._parts[part.name] = part
        self._record(part, ids=list(part.ids))

    def uploaded(self, part: BatchPart, file_id: str) -> None:
        """Record how to look up the batch, before it is created."""
        part.file_id = file_id
        self._record(part, file_id=file_id)

    def created(self, part: BatchPart, batch_id: str) -> None:
        """Record the batch's id."""
        part.batch_id = batch_id
        self.batch_ids.append(batch_id)
        self._record(part, batch_id=batch_id, **({"is_guess": True} if part.is_guess else {}))

    def refute(self, part: BatchPart) -> None:
        """Record that the guessed batch is another one."""
        self.batch_ids.remove(part.batch_id)
        part.refuted.add(part.batch_id)
        self._record(part, refuted=part.batch_id, batch_id="")
        part.batch_id, part.is_guess, part.status, part.state = "", False, "", BatchState("")

    def over(self, part: BatchPart) -> None:
        """Close a batch after its results are read, or if it was never created."""
        self._journal.append({"part": part.name, "over": True})
        self._parts.pop(part.name, None)
        part.remove()

    def _record(self, part: BatchPart, **facts: object) -> None:
        self._journal.append({"part": part.name, **facts})
        self._journal.sync()

    def _apply(self, record: dict[str, object]) -> None:
        name = str(record["part"])
        ids = record.get("ids")
        if isinstance(ids, list):
            self._parts[name] = BatchPart(name, tuple(map(str, ids)), self._folder / f"{name}.jsonl")
        part = self._parts.get(name)
        if part is None:
            return
        part.file_id = str(record.get("file_id", part.file_id))
        part.batch_id = str(record.get("batch_id", part.batch_id))
        part.is_guess = bool(record.get("is_guess", part.is_guess and bool(part.batch_id)))
        if "refuted" in record:
            part.refuted.add(str(record["refuted"]))
        if "over" in record:
            del self._parts[name]
