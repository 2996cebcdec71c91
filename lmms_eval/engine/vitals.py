"""Signs of a running process for those who watch the run: a small file that is replaced once a second."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import orjson

from lmms_eval.storage.atomic import replacing

VITALS = "live-*.json"
INTERVAL_S = 1.0


class Vitals:
    """Context in which a thread of this process writes ``live-RANK.json`` into the run's folder.

    A file that cannot be written is left as it is: watching never fails a run.

    Args:
        folder: the run's folder.
        rank: number of this process in its launch.
        counts: what the process is at; asked for once a second.
    """

    def __init__(self, folder: Path, rank: int, counts: Callable[[], dict[str, int]]) -> None:
        self._path = folder / VITALS.replace("*", str(rank))
        self._counts = counts
        self._begun = {"host": socket.gethostname(), "pid": os.getpid(), "started": time.time()}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._tell, name="vitals", daemon=True)

    def __enter__(self) -> Vitals:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _tell(self) -> None:
        while True:
            content = {**self._begun, "time": time.time(), **self._counts()}
            if (memory := resident_bytes(os.getpid())) is not None:
                content["memory"] = memory
            with contextlib.suppress(OSError), replacing(self._path, survives_power_loss=False) as file:
                file.write(orjson.dumps(content))
            if self._ended.wait(INTERVAL_S):
                return


def resident_bytes(pid: int) -> int | None:
    """Return the memory that a process holds; ``None`` where the system does not tell."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]
    except (OSError, IndexError):
        return None
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
