"""One live display of a run: done, rate, time left, running score, failures, tokens; plain lines without a terminal.

Of several processes the first one shows all: each publishes its counts once a second.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from lmms_eval.stats import item_number

PLAIN_INTERVAL_S = 30.0
RUNNING_INTERVAL_S = 1.0
SCORE_UNIT = 1_000_000
"""Sums of scores are exchanged as whole numbers of this fraction."""


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
        self._others: Counter[str] = Counter()
        self._running, self._running_text, self._asked_running = running, "", -math.inf
        self._started = self._last_line = time.monotonic()
        self._enabled = enabled
        self._bar: Any = None
        if enabled and sys.stderr.isatty():
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
                self._note_score(record["scores"][0]["metrics"] if record["scores"] else {})
            self._show()

    def counts(self) -> dict[str, int]:
        """Counts of this process in this start, for the others."""
        with self._lock:
            return {
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

    def _note_score(self, metrics: dict[str, Any]) -> None:
        for value in metrics.values():
            number = item_number(value)
            if number is not None:
                self._score_sum += float(number)
                self._score_count += 1
                return

    def _state(self) -> str:
        others = self._others
        number, total = self._score_count + others["scores"], self._score_sum + others["score"] / SCORE_UNIT
        score = f"score {total / number:.4f} " if number else ""
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
