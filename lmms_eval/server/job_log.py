"""The log of a job: bounded on disk, with its beginning and its end kept.

The log is stored in parts. Each part is a file that is named by the position of its first byte in the whole log, so
positions stay valid. The first part and the last two are kept; parts between them are deleted while the job writes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from lmms_eval.utils.redaction import mask_known

PART_BYTES = 4 << 20
_LAST_PARTS = 2
_SUFFIX = ".log"
_TAIL_BYTES = 256 << 10
"""Bytes at the end of the log that are searched for the last lines."""
_LONGEST_WAIT = 8 << 10
"""Bytes of an incomplete line that are held back. No secret is as long."""


def _parts(folder: Path) -> list[tuple[int, int, Path]]:
    """List the parts of a log, each with the positions of its begin and its end."""
    found = []
    with contextlib.suppress(FileNotFoundError):  # no folder yet
        for path in folder.iterdir():
            if path.suffix == _SUFFIX and path.stem.isdigit():
                with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
                    found.append((int(path.stem), int(path.stem) + path.stat().st_size, path))
    return sorted(found)


@dataclass(slots=True)
class LogWriter:
    """Appends to the parts of a log. Data that the disk refuses is counted and dropped."""

    folder: Path
    part_bytes: int = PART_BYTES
    _end: int = field(init=False, default=0)
    _start: int = field(init=False, default=0)
    """Position of the last part, which is continued if it has room."""
    _handle: int | None = field(init=False, default=None)
    _part_end: int = field(init=False, default=0)
    _lost: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        if parts := _parts(self.folder):
            self._start, self._end, _ = parts[-1]

    def write(self, data: bytes) -> None:
        """Append to the log. Never raises: a job continues even if its log cannot be written."""
        if self._lost and not self._append(f"[{self._lost} bytes of the log could not be written]\n".encode()):
            self._lost += len(data)
            return
        self._lost = 0
        if not self._append(data):
            self._lost += len(data)

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _append(self, data: bytes) -> bool:
        view = memoryview(data)
        try:
            while view:
                if self._handle is None or self._end >= self._part_end:
                    self.close()
                    self.folder.mkdir(parents=True, exist_ok=True)
                    if self._end >= self._start + self.part_bytes:
                        self._start = self._end
                    path = self.folder / f"{self._start:016d}{_SUFFIX}"
                    self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
                    self._part_end = self._start + self.part_bytes
                    for _, _, old in _parts(self.folder)[1:-_LAST_PARTS]:
                        old.unlink(missing_ok=True)
                assert self._handle is not None
                written = os.write(self._handle, view[: self._part_end - self._end])
                self._end += written
                view = view[written:]
        except OSError:
            return False
        return True


class LogPiece(Struct, frozen=True):
    """A piece of a log."""

    data: bytes
    next: int
    """Position after the piece."""
    left_out: int = 0
    """Bytes before the piece that are no longer kept."""

    def text(self) -> str:
        """Return the piece as text, with a line in place of what is no longer kept."""
        gap = f"[{self.left_out} bytes of the log are not kept]\n" if self.left_out else ""
        return gap + self.data.decode("utf-8", "replace")


class MaskedLog:
    """Log that masks the secrets known to this process before anything is written."""

    def __init__(self, writer: LogWriter) -> None:
        self._writer, self._rest = writer, b""

    def write(self, data: bytes) -> None:
        """Write the complete lines. An incomplete line is held back, since it may end within a secret."""
        text = mask_known((self._rest + data).decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        cut = max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
        cut = max(cut, len(text) - _LONGEST_WAIT)
        self._rest = text[cut:]
        if cut:
            self._writer.write(text[:cut])

    def close(self) -> None:
        if self._rest:
            self._writer.write(self._rest)
        self._writer.close()


class JobLog(Struct, frozen=True):
    """Reader of a job's log, which may still be growing."""

    folder: Path

    @property
    def end(self) -> int:
        """Position after the last byte."""
        parts = _parts(self.folder)
        return parts[-1][1] if parts else 0

    def read(self, place: int, most: int) -> LogPiece:
        """Read up to ``most`` bytes from a position; empty at the end. Raises ``OSError``."""
        for start, end, path in _parts(self.folder):
            if place < end:
                begin = max(place, start)
                with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:  # deleted meanwhile
                    file.seek(begin - start)
                    data = file.read(min(most, end - begin))
                    return LogPiece(data, begin + len(data), begin - place)
        return LogPiece(b"", place)

    def whole_lines(self, place: int, most: int, has_ended: bool) -> LogPiece:
        """Read as ``read`` does, but leave an incomplete last line to the next piece while the job runs."""
        piece = self.read(place, most)
        cut = piece.data.rfind(b"\n") + 1
        if has_ended or (not cut and len(piece.data) >= most):
            return piece
        return LogPiece(piece.data[:cut], piece.next - len(piece.data) + cut, piece.left_out)

    def lines(self, piece_bytes: int = 1 << 20) -> Iterator[str]:
        """Yield the lines of the log with their line ends. Raises ``OSError``."""
        place, rest = 0, ""
        while (piece := self.read(place, piece_bytes)).data:
            whole = (rest + piece.text()).splitlines(keepends=True)
            rest = "" if whole[-1].endswith("\n") and len(whole[-1]) < piece_bytes else whole.pop()
            if len(rest) > piece_bytes:
                whole.append(rest)
                rest = ""
            yield from whole
            place = piece.next
        if rest:
            yield rest

    def last_lines(self, count: int) -> list[str]:
        """Read the last lines. Raises ``OSError``."""
        piece = self.read(max(0, self.end - _TAIL_BYTES), _TAIL_BYTES)
        data = piece.data
        while (more := self.read(piece.next, _TAIL_BYTES)).data:
            data, piece = data + more.data, more
        return data.decode("utf-8", "replace").splitlines()[-count:]
