"""The process that writes the report of a run (``--report``): now and then while the run goes on, or once at its end.

A child of the run, which speaks lines over pipes (``utils/line_process.py``) and ends with it, however that ends. While
the run goes on it has the lowest priority, and writes again when the journals have grown by half and ten times as long
as the last writing took has passed: all of these writings together cost twice the last one.
"""

from __future__ import annotations

import contextlib
import os
import queue
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from lmms_eval.utils.line_process import own_pipes
from lmms_eval.utils.redaction import mask_known, note_secrets

FIRST_S = 10.0
"""Seconds from the start of a run to the first writing, and between two at least."""
GROWTH, REST = 1.5, 10.0
"""The journals have to have grown by this factor, and so many times the seconds of the last writing have to pass."""
LOOK_S = 0.5
LOWEST = 19


@dataclass(slots=True)
class Renewer:
    """Writer of the report of a run that goes on."""

    lines: queue.SimpleQueue[bytes]
    """Ends (an empty line) when the run needs it no more, or has died."""
    record: Path
    """Folder of the journals."""
    out: Path
    first_s: float
    _parent: int = field(default_factory=os.getppid)
    _size: int = 0

    def serve(self) -> None:
        """Write as often as is due, until the input ends. What fails is tried again, and told at the run's end."""
        due = time.monotonic() + self.first_s
        while True:
            self._look(LOOK_S)
            size = self._journal_bytes()
            if not size or size < GROWTH * self._size or time.monotonic() < due:
                continue
            begin = time.monotonic()
            write(str(self.record), self.out, self._look)
            self._size = size
            due = time.monotonic() + max(self.first_s, REST * (time.monotonic() - begin))

    def _look(self, wait_s: float = 0.0) -> None:
        """End where the run does, also in the middle of a writing."""
        if os.getppid() != self._parent:
            raise SystemExit(1)  # what the run had started may still hold the pipe
        with contextlib.suppress(queue.Empty):
            self.lines.get(timeout=wait_s)
            raise SystemExit(0)

    def _journal_bytes(self) -> int:
        from lmms_eval.results.journals import JOURNALS

        return sum(path.stat().st_size for path in self.record.glob(JOURNALS))


def write(run: str, out: Path, before_piece: Callable[[], None] | None = None) -> dict[str, Any]:
    """Write a run's report; returns what the run is told: ``samples``, or a ``problem``."""
    try:
        from lmms_eval.viewer.page import ReportOptions
        from lmms_eval.viewer.report import write_report

        report = write_report([run], out, ReportOptions(), before_piece)
    except Exception as error:  # noqa: BLE001 - a report that fails is told in a line, the run does not depend on it
        again = shlex.join(["lmms-eval", "report", run, "--out", str(out)])
        return {"problem": mask_known(f"{error or type(error).__name__}; `{again}` tries again")}
    return {"samples": report.samples}


def main() -> None:
    lines, replies = own_pipes()
    first = lines.get()
    if not first:
        return
    job = orjson.loads(first)
    note_secrets(job["secrets"])
    if job["goes_on"]:
        with contextlib.suppress(OSError):
            os.nice(LOWEST)
        Renewer(lines, Path(job["run"]), Path(job["out"]), job["first_s"]).serve()
    answer = write(job["run"], Path(job["out"]))
    with contextlib.suppress(BrokenPipeError), replies:  # the run does not wait any longer
        replies.write(orjson.dumps(answer) + b"\n")


if __name__ == "__main__":
    main()
