"""Reports of ended jobs, and comparisons of several: made once by the ordinary command, then only read."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lmms_eval.errors import UsageError
from lmms_eval.utils.redaction import redact_text

MOST_RUNS = 20
PATIENCE_S = 1800.0
_MADE = "made"
"""Stands beside the pages when they are whole."""


@dataclass(frozen=True, slots=True)
class Pages:
    """Pages of one run or of several."""

    name: str
    state: Literal["making", "ready", "failed"]
    error: str = ""


@dataclass(frozen=True, slots=True)
class Output:
    """The output folder of an ended job."""

    job_id: str
    path: Path


class PageMaker:
    """Makes the pages of jobs below a folder, one after the other.

    Args:
        folder: holds a folder for each set of jobs.
        environment: variables of the commands that make them.
    """

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder, self._environment = folder, environment
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._making: set[str] = set()
        self._errors: dict[str, str] = {}

    def make(self, outputs: Sequence[Output]) -> Pages:
        """Begin to make pages unless they are there or on their way; an error is told once, then it is tried again.

        Raises:
            UsageError: no job, or too many.
        """
        if not 0 < len(outputs) <= MOST_RUNS:
            raise UsageError(f"choose from 1 to {MOST_RUNS} evaluations; got {len(outputs)}")
        name = hashlib.sha256("\n".join(sorted(one.job_id for one in outputs)).encode()).hexdigest()[:20]
        with self._lock:
            if name in self._making:
                return Pages(name, "making")
            if error := self._errors.pop(name, ""):
                return Pages(name, "failed", error)
            if (self._folder / name / _MADE).exists():
                return Pages(name, "ready")
            self._making.add(name)
        threading.Thread(target=self._write, args=(name, [one.path for one in outputs]), daemon=True).start()
        return Pages(name, "making")

    def file(self, name: str, path: str) -> Path | None:
        """Find a file of finished pages; ``None`` for anything that is none."""
        root = (self._folder / name).resolve()
        if root.parent != self._folder.resolve() or not (root / _MADE).exists():
            return None
        found = (root / "report" / path).resolve()
        return found if found.is_relative_to(root / "report") and found.is_file() else None

    def _write(self, name: str, paths: Sequence[Path]) -> None:
        target = self._folder / name / "report"
        words = [sys.executable, "-m", "lmms_eval", "report", "--out", str(target), "--", *map(str, paths)]
        with self._turn:
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                done = subprocess.run(
                    words, env=self._environment, capture_output=True, text=True, errors="replace", timeout=PATIENCE_S
                )
                error = "" if done.returncode == 0 else _last_line(done.stderr) or f"exit code {done.returncode}"
                if not error:
                    (target.parent / _MADE).touch()
            except (OSError, subprocess.TimeoutExpired) as problem:
                error = f"the pages could not be made: {problem}"
        with self._lock:
            self._making.discard(name)
            if error:
                self._errors[name] = redact_text(error)


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
