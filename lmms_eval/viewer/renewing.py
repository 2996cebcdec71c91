"""The process that writes the report of a run (``--report``), repeatedly during the run or once at its end.

It is a child of the run, exchanges lines over pipes (``lmms_eval.processes``), and ends when the run ends in any way.
During the run, it has the lowest priority. It writes again when the journals have grown by half and ten times the
duration of the last writing has passed, so that all of these writings together take about twice as long as the last.
"""

from __future__ import annotations

import contextlib
import os
import queue
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from lmms_eval.processes import Parent
from lmms_eval.utils.redaction import mask_known, note_secrets

FIRST_S = 10.0
"""Seconds from the start of a run to the first writing, and least seconds between two writings."""
GROWTH, REST = 1.5, 10.0
"""Least growth of the journals between two writings, and least rest as a multiple of the last writing's duration."""
LOOK_S = 0.5
LOWEST = 19


class Renewer:
    """Writes the report of a run repeatedly during the run, for the first time after ``first_s`` seconds.

    The input of ``run`` ends (with an empty line) when the run needs no more reports or has died. ``record`` is the
    folder of the journals.
    """

    def __init__(self, run: Parent, record: Path, out: Path, first_s: float) -> None:
        self.run, self.record, self.out, self.first_s = run, record, out, first_s
        self._parent = os.getppid()
        self._size = 0

    def serve(self) -> None:
        """Write whenever it is due, until the input ends. A failure is ignored, since the report is written again."""
        from lmms_eval.results.journals import JOURNALS

        due = time.monotonic() + self.first_s
        while True:
            self._look(LOOK_S)
            size = sum(path.stat().st_size for path in self.record.glob(JOURNALS))
            if not size or size < GROWTH * self._size or time.monotonic() < due:
                continue
            begin = time.monotonic()
            write(str(self.record), self.out, self._look)
            self._size = size
            due = time.monotonic() + max(self.first_s, REST * (time.monotonic() - begin))

    def _look(self, wait_s: float = 0.0) -> None:
        """Exit if the run has ended, also in the middle of a writing."""
        if os.getppid() != self._parent:
            raise SystemExit(1)  # other children of the run may still hold the pipe open
        with contextlib.suppress(queue.Empty):
            self.run.receive(wait_s)
            raise SystemExit(0)


def write(run: str, out: Path, before_piece: Callable[[], None] | None = None) -> dict[str, Any]:
    """Write a run's report. Returns the reply to the run: the number of ``samples``, or a ``problem``."""
    try:
        from lmms_eval.viewer.page import ReportOptions
        from lmms_eval.viewer.report import write_report

        report = write_report([run], out, ReportOptions(), before_piece)
    except Exception as error:  # noqa: BLE001 - the reply reports the failure, which does not affect the run
        again = shlex.join(["lmms-eval", "report", run, "--out", str(out)])
        return {"problem": mask_known(f"{error or type(error).__name__}; `{again}` tries again")}
    return {"samples": report.samples}


def main() -> None:
    parent = Parent()
    first = parent.receive()
    if not first:
        return
    job = orjson.loads(first)
    note_secrets(job["secrets"])
    if job["is_live"]:
        with contextlib.suppress(OSError):
            os.nice(LOWEST)
        Renewer(parent, Path(job["run"]), Path(job["out"]), job["first_s"]).serve()
    parent.send(orjson.dumps(write(job["run"], Path(job["out"]))))


if __name__ == "__main__":
    main()
