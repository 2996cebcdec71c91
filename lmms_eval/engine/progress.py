"""One live display of a run: done, rate, time left, running score, failures, tokens; plain lines without a terminal."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from lmms_eval.stats import item_number

PLAIN_INTERVAL_S = 30.0


class Progress:
    """Counts documents as they are scored. ``enabled=False`` shows nothing (other ranks, library use)."""

    def __init__(self, total: int, initial: int = 0, enabled: bool = True) -> None:
        self._lock = threading.Lock()
        self.total, self.done, self.failed, self.tokens = total, initial, 0, 0
        self._initial = initial
        self._score_sum, self._score_count = 0.0, 0
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
            if self._bar is not None:
                self._bar.update(1)
                self._bar.set_postfix_str(self._state(), refresh=False)
            elif self._enabled and time.monotonic() - self._last_line >= PLAIN_INTERVAL_S:
                self._last_line = time.monotonic()
                self._line()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._enabled and time.monotonic() - self._started >= PLAIN_INTERVAL_S:
            self._line()

    def _note_score(self, metrics: dict[str, Any]) -> None:
        for value in metrics.values():
            number = item_number(value)
            if number is not None:
                self._score_sum += float(number)
                self._score_count += 1
                return

    def _state(self) -> str:
        score = f"score {self._score_sum / self._score_count:.4f} " if self._score_count else ""
        return f"{score}failed {self.failed} tokens {self.tokens}"

    def _line(self) -> None:
        rate = (self.done - self._initial) / max(time.monotonic() - self._started, 1e-9)
        left = (self.total - self.done) / rate if rate > 0 else float("inf")
        sys.stderr.write(f"{self.done}/{self.total} documents, {rate:.1f}/s, {left:.0f} s left, {self._state()}\n")
        sys.stderr.flush()
