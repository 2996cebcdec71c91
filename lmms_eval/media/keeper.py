"""The folder where a run keeps media that have no file of their own: each once, under the hash of its bytes."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from loguru import logger
from msgspec import Struct

from lmms_eval.errors import DataError, JournalError
from lmms_eval.storage.atomic import replacing
from lmms_eval.storage.lines import JournalTails, JournalWriter
from lmms_eval.utils.media_types import suffix_of

FOLDER = "media"
"""Folder next to the samples files; without ``--output_path`` in the run's folder."""
PATTERN = "media-*.jsonl"
"""Names of the files in the run's folder that list what each process has kept."""
NAME = re.compile(r"[0-9a-f]{64}\.[a-z0-9]{2,4}")
"""Names of the files: a hash and a suffix of ``lmms_eval.utils.media_types``, nothing that data or a model wrote."""
Reason = Literal["", "budget", "size", "disk"]
"""Why a medium was not kept; empty if it was."""
_MOST_KNOWN = 65_536


class KeepLimits(Struct, frozen=True):
    """Limits on the kept media, in bytes."""

    total: int
    """Limit on all media of a run."""
    each: int
    """Limit on one picture, frame, sound or video."""


class KeptMedium(Struct, frozen=True):
    """The outcome for one medium: the path of its file below the folder of the samples, or the reason."""

    file: str = ""
    reason: Reason = ""


class MediaKeeper:
    """Keeps the media of a run; thread-safe. Several processes may share its folders.

    A file is complete before ``keep`` returns, so a record that names it can follow. Nothing that goes wrong here ends
    a run: the medium is not kept, and its record says why.

    Args:
        folder: the folder of the files, which is created with the first one.
        record: the run's folder, which lists the files. So a resumed run knows what it has used of its budget.
        limits: what is kept at most.
        rank: rank of this process, which writes its own list.
        is_alone: no other process writes to the run's folder.
    """

    def __init__(self, folder: Path, record: Path, limits: KeepLimits, rank: int = 0, is_alone: bool = True) -> None:
        self.folder, self.limits = folder.absolute(), limits
        self._list_path, self._is_alone = record / f"media-{rank}.jsonl", is_alone
        self._tails = JournalTails(record, PATTERN)
        self._list: JournalWriter | None = None
        self._lock = threading.Lock()
        self._writing: dict[str, threading.Event] = {}
        self._sizes: dict[str, int] = {}
        """Sizes of the files of all processes, by name."""
        self._known: dict[Hashable, KeptMedium] = {}
        """Outcomes of this process by the caller's key."""
        self._left_out: Counter[str] = Counter()
        self._bytes = 0
        self._prefix, self._is_made = f"{self.folder}/", False
        with self._lock:
            self._read_lists()

    def keep(self, key: Hashable, read: Callable[[], bytes], sha256: str = "") -> KeptMedium:
        """Keep a medium, unless a limit is reached.

        Args:
            key: identifies the medium in this process, so that it is read and hashed once.
            read: returns its bytes.
            sha256: the hexadecimal digest of its bytes, if it is known.
        """
        found = self._known.get(key)
        if found is None:
            data = read()
            found = self._kept(data, sha256)
            with self._lock:
                if len(self._known) >= _MOST_KNOWN:
                    self._known.clear()
                self._known[key] = found
        return found

    def take_over(self, others: Sequence[Path]) -> None:
        """Copy the files of earlier starts that are in other folders, as far as they can be read."""
        for name, size in self._sizes.items():
            path = self.folder / name
            if not _has_size(path, size) and (
                found := next((one for one in others if _has_size(one / name, size)), None)
            ):
                with contextlib.suppress(OSError), replacing(path, survives_power_loss=False) as file:
                    file.write((found / name).read_bytes())

    def read(self, file: str) -> bytes | None:
        """Return the bytes of a kept file (``KeptMedium.file``); ``None`` if it is gone."""
        try:
            return (self.folder / file.rpartition("/")[2]).read_bytes()
        except OSError:
            return None

    def receive(self, file: str, data: bytes) -> None:
        """Keep a file of a process that does not share the folder, and has a budget of its own."""
        name = file.rpartition("/")[2]
        if NAME.fullmatch(name):
            with self._lock:
                if name not in self._sizes:
                    self._note(name, len(data))
            self._write(name, data)

    def stated(self) -> dict[str, Any]:
        """Return the facts for the results: folder, files and bytes of all processes, limits, what was not kept.

        Empty if every medium had a file of its own.
        """
        with self._lock:
            self._read_lists()
            if not self._sizes and not self._left_out:
                return {}
            return {
                "folder": FOLDER,
                "files": len(self._sizes),
                "bytes": self._bytes,
                "max_bytes": self.limits.total,
                "max_bytes_each": self.limits.each,
                "not_stored": dict(sorted(self._left_out.items())),
            }

    def close(self) -> None:
        if self._list is not None:
            self._list.close()

    def _kept(self, data: bytes, sha256: str) -> KeptMedium:
        if len(data) > self.limits.each:
            return self._without("size", len(data))
        name = f"{sha256 or hashlib.sha256(data).hexdigest()}.{suffix_of(data)}"
        with self._lock:
            is_first = name not in self._writing
            if is_first:
                if not self._has_room(name, len(data)):
                    return self._without_locked("budget", len(data))
                self._writing[name] = threading.Event()
            written = self._writing[name]
        if not is_first:
            written.wait()
            return KeptMedium(f"{FOLDER}/{name}") if name in self._sizes else KeptMedium(reason="disk")
        try:
            return self._write(name, data)
        finally:
            with self._lock:
                del self._writing[name]
            written.set()

    def _has_room(self, name: str, size: int) -> bool:
        """Return whether a file may be kept, and reserve its place; the caller holds the lock."""
        if name in self._sizes:
            return True
        if not self._is_alone:
            self._read_lists()
        if name not in self._sizes:
            if self._bytes + size > self.limits.total:
                return False
            self._note(name, size)
        return True

    def _write(self, name: str, data: bytes) -> KeptMedium:
        path = f"{self._prefix}{name}"
        try:
            if not _has_size(path, len(data)):
                self._replace(path, data)
            self._append({"file": name, "bytes": len(data)})
        except (OSError, JournalError) as error:
            with self._lock:
                self._bytes -= self._sizes.pop(name, 0)
                is_news = not self._left_out["disk"]
                self._left_out["disk"] += 1
            if is_news:
                logger.warning("media of this run are not stored in {}: {}", self.folder, error)
            return KeptMedium(reason="disk")
        return KeptMedium(f"{FOLDER}/{name}")

    def _replace(self, path: str, data: bytes) -> None:
        """Write a file that appears as a whole. A power loss may lose it: the data set still has the medium."""
        if not self._is_made:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._is_made = True
        temporary = f"{path}.{os.getpid()}.tmp"
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            try:
                written = os.write(descriptor, data)  # usually all: a buffer would copy the data once more
                while written < len(data):
                    written += os.write(descriptor, memoryview(data)[written:])
            finally:
                os.close(descriptor)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise

    def _without(self, reason: Reason, size: int) -> KeptMedium:
        with self._lock:
            return self._without_locked(reason, size)

    def _without_locked(self, reason: Reason, size: int) -> KeptMedium:
        """Note a medium that is left out, and log that the budget is used up, once in a run."""
        is_news = reason == "budget" and not self._left_out["budget"]
        self._left_out[reason] += 1
        with contextlib.suppress(JournalError):  # the journals of the run report a full disk
            self._append({"left_out": reason, "bytes": size})
        if is_news:
            logger.warning(
                "the budget for media of this run is used up ({} of {} MB, --log_media_mb): further pictures, frames "
                "and sounds are not stored; the run is not affected",
                f"{self._bytes / 2**20:.3g}", f"{self.limits.total / 2**20:.3g}",
            )  # fmt: skip
        return KeptMedium(reason=reason)

    def _append(self, entry: dict[str, Any]) -> None:
        if self._list is None:
            self._list = JournalWriter(self._list_path)
        self._list.append(entry)

    def _read_lists(self) -> None:
        """Add what was kept by earlier starts and by other processes; the caller holds the lock."""
        with contextlib.suppress(DataError):  # damaged or being replaced: the budget then covers what was read
            for place, entry in self._tails.news():
                if self._list is not None and self._tails.files[place.file] == self._list_path:
                    continue
                self._add(entry)

    def _add(self, entry: Mapping[str, Any]) -> None:
        name, size = entry.get("file"), entry.get("bytes")
        if isinstance(name, str) and isinstance(size, int) and NAME.fullmatch(name):
            if name not in self._sizes:
                self._note(name, size)
        elif entry.get("left_out") in ("budget", "size"):
            self._left_out[str(entry["left_out"])] += 1

    def _note(self, name: str, size: int) -> None:
        self._sizes[name] = size
        self._bytes += size


def _has_size(path: str | Path, size: int) -> bool:
    """Return whether a file of this size exists: a file is complete or absent, and its name is its hash."""
    try:
        return os.stat(path).st_size == size
    except OSError:
        return False
