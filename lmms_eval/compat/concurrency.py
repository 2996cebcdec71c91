"""Progress, concurrency and order of calls, by the names that API plugins of the family import."""

from __future__ import annotations

import hashlib
import logging
import math
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Never, Self

from msgspec.structs import replace
from tqdm import tqdm

from lmms_eval.utils.concurrency import AdaptiveConfig, Decision, LatencyWindow, decide

log = logging.getLogger(__name__)


def make_progress(
    total: int | None, desc: str = "Progress", disable: bool = False, log_interval: float = 30.0
) -> SlurmProgress | tqdm[Never]:
    """Open a progress display: ``update(n)``, ``close()``, ``n``, usable in a ``with`` statement.

    In a batch job (under Slurm, or without a terminal) it logs a line every ``log_interval`` seconds.
    """
    if disable or "SLURM_JOB_ID" in os.environ or not sys.stderr.isatty():
        return SlurmProgress(total, desc, disable, log_interval)
    return tqdm(total=total, desc=desc)


class SlurmProgress:
    """Progress as log lines: at most one per ``log_interval`` seconds, one after the last item, one at close.

    Updates may come from several threads.
    """

    def __init__(
        self, total: int | None, desc: str = "Progress", disable: bool = False, log_interval: float = 30.0
    ) -> None:
        self.total, self.desc, self.disable, self.log_interval = total or 0, desc, disable, log_interval
        self.n = 0
        self._rank = os.environ.get("RANK") or os.environ.get("SLURM_ARRAY_TASK_ID") or "0"
        self._started = self._shown = time.monotonic()
        self._is_open = True
        self._lock = threading.Lock()

    def update(self, n: int = 1) -> None:
        """Count ``n`` more items."""
        with self._lock:
            self.n += n
            now = time.monotonic()
            if now - self._shown < self.log_interval and self.n != self.total:
                return
            self._shown = now
            elapsed = now - self._started
            speed = self._speed(elapsed)
            left = (self.total - self.n) / speed if speed > 0 else math.nan
            share = 100 * self.n / self.total if self.total else 0.0
            self._say(
                f"{self.n}/{self.total} ({share:.1f}%) | {speed:.2f} it/s | elapsed {format_time(elapsed)}"
                f" | ETA {format_time(left)}"
            )

    def close(self) -> None:
        """End the display with a summary line; closing it again has no effect."""
        with self._lock:
            if self._is_open:
                self._is_open = False
                elapsed = time.monotonic() - self._started
                speed = self._speed(elapsed)
                self._say(f"done {self.n}/{self.total} in {format_time(elapsed)} ({speed:.2f} it/s)")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _speed(self, elapsed: float) -> float:
        return self.n / elapsed if elapsed > 0 else 0.0

    def _say(self, text: str) -> None:
        if not self.disable:
            log.info("[rank %s] %s: %s", self._rank, self.desc, text)


def format_time(seconds: float) -> str:
    """Write a duration: ``59s``, ``2m05s``, ``1h01m``; ``?`` if it is negative, infinite or NaN."""
    if not seconds >= 0 or math.isinf(seconds):
        return "?"
    if seconds < 60:
        return f"{seconds:.0f}s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest:02d}s" if minutes < 60 else f"{minutes // 60}h{minutes % 60:02d}m"


def decide_next_concurrency(
    *,
    current_concurrency: int,
    total_requests: int,
    failed_requests: int,
    rate_limited_requests: int,
    latencies: Sequence[float],
    config: AdaptiveConfig,
) -> Decision:
    """Decide as the project's own back ends do. Without requests nothing changes; the minimum always holds."""
    if total_requests <= 0:
        return Decision(current_concurrency, current_concurrency, 0.0, 0.0, 0.0, False)
    window = LatencyWindow(total_requests, failed_requests, rate_limited_requests, latencies)
    decision = decide(current_concurrency, window, config)
    return replace(decision, next_concurrency=max(config.min_concurrency, decision.next_concurrency))


def make_prefix_hash(text: str | None, prefix_chars: int | str = 256) -> str:
    """Return the SHA-1 of the first characters (at least one), which groups requests with a common prefix."""
    prefix = (text or "")[: max(1, int(prefix_chars))]
    return hashlib.sha1(prefix.encode("utf-8", "ignore"), usedforsecurity=False).hexdigest()


def extract_text_prefix_from_chat_messages(messages: Sequence[Any] | None, max_chars: int = 256) -> str:
    """Return the first characters, at least one, of the texts of messages; parts are joined without a separator."""
    return "".join(_texts(messages or ()))[: max(1, int(max_chars))]


def _texts(messages: Sequence[Any]) -> Iterator[str]:
    for content in (message.get("content") for message in messages if isinstance(message, Mapping)):
        for part in [content] if isinstance(content, str) else content if isinstance(content, list | tuple) else ():
            text = part.get("text") if isinstance(part, Mapping) else part
            if isinstance(text, str):
                yield text


def parse_bool(value: Any) -> bool:
    """Return whether the text of a model argument is ``1``, ``true``, ``yes`` or ``on``, in any case."""
    return str(value).strip().lower() in {"1", "true", "yes", "on"}
