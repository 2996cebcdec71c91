"""One live display of a run: done, rate, time left, running score, failures, tokens; plain lines without a terminal.

Of several processes the first one shows all: each publishes its counts once a second.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lmms_eval.stats import item_number
from lmms_eval.utils.terminal import is_live

PLAIN_INTERVAL_S = 30.0
RUNNING_INTERVAL_S = 1.0
WIDE = 72
"""Columns of a terminal from which on the display has a bar, which else would push score and failures out."""
_NARROW = "{n_fmt}/{total_fmt} {remaining}{postfix}"
SCORE_UNIT = 1_000_000
"""Sums of scores are exchanged as whole numbers of this fraction."""
_SUM, _COUNT = "score of ", "scores of "
"""Before a task's name, in what processes exchange."""


@dataclass(frozen=True, slots=True)
class RunningScore:
    """Mean of the documents' numbers of a task so far, as they are recorded; no score of the task."""

    value: float
    count: int


@dataclass(frozen=True, slots=True)
class ProgressLook:
    """Counts of a run at one moment, those of its other processes with them."""

    done: int
    total: int
    failed: int
    tokens: int
    rate: float
    """Documents per second since the start."""
    scores: Mapping[str, RunningScore] = field(default_factory=dict)
    """By task; empty unless they are counted by task."""


class Progress:
    """Counts documents as they are scored. ``enabled=False`` shows nothing (other processes, library use).

    ``running``: text of the running number with its interval, where there is one; asked for once a second at most.
    """

    def __init__(
        self, total: int, initial: int = 0, enabled: bool = True, running: Callable[[], str] = lambda: ""
    ) -> None:
        self._lock = threading.Lock()
        self.total, self.done, self.failed, self.tokens = total, initial, 0, 0
        self._initial = initial
        self._score_sum, self._score_count = 0.0, 0
        self._by_task: dict[str, list[float]] | None = None
        """Sums and counts of scores, where they are asked for."""
        self._others: Counter[str] = Counter()
        self._running, self._running_text, self._asked_running = running, "", -math.inf
        self._started = self._last_line = time.monotonic()
        self._enabled = enabled
        self._bar: Any = None
        if enabled and is_live(sys.stderr, os.environ):
            from tqdm import tqdm

            self._bar = tqdm(total=total, initial=initial, unit="doc", dynamic_ncols=True, smoothing=0.05)

    def add_tokens(self, count: int) -> None:
        self.tokens += count

    def document(self, record: dict[str, Any]) -> None:
        """A document is finished; ``record`` is its journal record."""
        with self._lock:
            self.done += 1
            if "failed" in record:
                self.failed += 1
            else:
                number = _number(record)
                if number is not None:
                    self._score_sum += number
                    self._score_count += 1
                    self._count_for_task(record, number)
            self._show()

    def count_by_task(self, earlier: Iterable[Mapping[str, Any]]) -> None:
        """Count scores by task too, from now on. ``earlier``: records of documents that are finished already."""
        with self._lock:
            self._by_task = {}
            for record in earlier:
                if "failed" not in record and (number := _number(record)) is not None:
                    self._count_for_task(record, number)

    def look(self) -> ProgressLook:
        """Return what is known by now."""
        with self._lock:
            done, others = self._all_done, self._others
            names = set(self._by_task or ()) | {name[len(_SUM) :] for name in others if name.startswith(_SUM)}
            scores = {}
            for name in names:
                total, count = (self._by_task or {}).get(name, (0.0, 0))
                total, count = total + others[_SUM + name] / SCORE_UNIT, count + others[_COUNT + name]
                if count:
                    scores[name] = RunningScore(total / count, int(count))
            return ProgressLook(
                done, self.total, self.failed + others["failed"], self.tokens + others["tokens"],
                (done - self._initial) / max(time.monotonic() - self._started, 1e-9), scores,
            )  # fmt: skip

    def counts(self) -> dict[str, int]:
        """Counts of this process in this start, for the others."""
        with self._lock:
            by_task: dict[str, int] = {}
            for name, (total, count) in (self._by_task or {}).items():
                by_task |= {_SUM + name: round(total * SCORE_UNIT), _COUNT + name: int(count)}
            return by_task | {
                "done": self.done - self._initial,
                "failed": self.failed,
                "tokens": self.tokens,
                "score": round(self._score_sum * SCORE_UNIT),
                "scores": self._score_count,
            }

    def add_others(self, counts: Mapping[str, int]) -> None:
        """``counts`` of all other processes together."""
        with self._lock:
            self._others = Counter(counts)
            self._show()

    def close(self) -> None:
        self._asked_running = -math.inf
        try:
            if self._bar is not None:
                self._bar.set_postfix_str(self._state(), refresh=False)
                self._bar.close()
            elif self._enabled and time.monotonic() - self._started >= PLAIN_INTERVAL_S:
                self._line()
        except OSError:
            self._give_up()

    def _show(self) -> None:
        try:
            if self._bar is not None:
                self._bar.bar_format = _NARROW if _columns() < WIDE else None
                self._bar.set_postfix_str(self._state(), refresh=False)
                self._bar.update(self._all_done - self._bar.n)
            elif self._enabled and time.monotonic() - self._last_line >= PLAIN_INTERVAL_S:
                self._last_line = time.monotonic()
                self._line()
        except OSError:
            self._give_up()

    def _give_up(self) -> None:
        """A terminal that has gone away, or a full disk under the log, ends the display and not the run."""
        self._bar, self._enabled = None, False

    @property
    def _all_done(self) -> int:
        return self.done + self._others["done"]

    def _count_for_task(self, record: Mapping[str, Any], number: float) -> None:
        if self._by_task is not None:
            sums = self._by_task.setdefault(record["task"], [0.0, 0])
            sums[0] += number
            sums[1] += 1

    def _state(self) -> str:
        others = self._others
        number, total = self._score_count + others["scores"], self._score_sum + others["score"] / SCORE_UNIT
        # Those of an earlier start would have to be read again for a number that the table gives in the end.
        new = f"(of {number} new) " if self._initial else ""
        score = f"score {total / number:.4f} {new}" if number else ""
        if (now := time.monotonic()) - self._asked_running >= RUNNING_INTERVAL_S:
            self._running_text, self._asked_running = self._running(), now
        if self._running_text:
            score = f"{self._running_text} "
        return f"{score}failed {self.failed + others['failed']} tokens {self.tokens + others['tokens']}"

    def _line(self) -> None:
        done = self._all_done
        rate = (done - self._initial) / max(time.monotonic() - self._started, 1e-9)
        left = (self.total - done) / rate if rate > 0 else float("inf")
        sys.stderr.write(f"{done}/{self.total} documents, {rate:.1f}/s, {left:.0f} s left, {self._state()}\n")
        sys.stderr.flush()


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError, AttributeError):  # closed, no terminal any more, or something in its place
        return WIDE


def _number(record: Mapping[str, Any]) -> float | None:
    """Return the number of a scored document: that of its first metric that has one."""
    for value in (record["scores"][0]["metrics"] if record["scores"] else {}).values():
        number = item_number(value)
        if number is not None and math.isfinite(number):
            return float(number)
    return None
