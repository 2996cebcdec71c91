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
_REPORT, _MADE = "report", "made"
"""The pages, and what stands beside them when they are whole."""


@dataclass(frozen=True, slots=True)
class Pages:
    """Pages of one run or of several."""

    name: str
    state: Literal["making", "ready", "failed"]
    error: str = ""


@dataclass(frozen=True, slots=True)
class Order:
    """Pages that are to be made."""

    name: str
    folder: Path
    """Place for the pages."""
    outputs: Sequence[Path]
    """Output folders of ended runs."""


def name_of(job_ids: Sequence[str]) -> str:
    """Name the pages of jobs: a single one's by itself, those of several by all of them, in whatever order."""
    if len(job_ids) == 1:
        return job_ids[0]
    return hashlib.sha256("\n".join(sorted(job_ids)).encode()).hexdigest()[:20]


class PageMaker:
    """Makes pages, one after the other.

    Args:
        environment: variables of the commands that make them.
    """

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._making: set[str] = set()
        self._errors: dict[str, str] = {}

    def make(self, order: Order) -> Pages:
        """Begin to make pages unless they are there or on their way; an error is told once, then it is tried again.

        Raises:
            UsageError: of no run, or of too many.
        """
        if not 0 < len(order.outputs) <= MOST_RUNS:
            raise UsageError(f"choose from 1 to {MOST_RUNS} evaluations; got {len(order.outputs)}")
        with self._lock:
            if order.name in self._making:
                return Pages(order.name, "making")
            if error := self._errors.pop(order.name, ""):
                return Pages(order.name, "failed", error)
            if (order.folder / _MADE).exists():
                return Pages(order.name, "ready")
            self._making.add(order.name)
        threading.Thread(target=self._write, args=(order,), daemon=True).start()
        return Pages(order.name, "making")

    def _write(self, order: Order) -> None:
        words = [sys.executable, "-m", "lmms_eval", "report", "--out", str(order.folder / _REPORT), "--"]
        with self._turn:
            try:
                order.folder.mkdir(parents=True, exist_ok=True)
                done = subprocess.run(
                    [*words, *map(str, order.outputs)],
                    env=self._environment, capture_output=True, text=True, errors="replace", timeout=PATIENCE_S,
                )  # fmt: skip
                error = "" if done.returncode == 0 else _last_line(done.stderr) or f"exit code {done.returncode}"
                if not error:
                    (order.folder / _MADE).touch()
            except (OSError, subprocess.TimeoutExpired) as problem:
                error = f"the pages could not be made: {problem}"
        with self._lock:
            self._making.discard(order.name)
            if error:
                self._errors[order.name] = redact_text(error)


def file_of(folder: Path, path: str) -> Path | None:
    """Find a file of pages that are whole; ``None`` for anything that is none."""
    root = (folder / _REPORT).resolve()
    if not (folder / _MADE).exists():
        return None
    try:
        found = (root / path).resolve()
        return found if found.is_relative_to(root) and found.is_file() else None
    except (OSError, ValueError):
        return None


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
