"""The choice of the next batch, and its encoding in threads while another one generates."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from lmms_eval.models.hf.batching import Shape, is_full, pick_batch
from lmms_eval.models.hf.encode import Encoded, Encoder

if TYPE_CHECKING:
    from lmms_eval.models.hf.inputs import Prepared
    from lmms_eval.models.hf.jobs import Job


class Lookahead:
    """Batches by the requests in them. What was not started ahead is encoded when it is asked for.

    Args:
        encoders: one for each thread, sharing nothing: fast tokenizers must not be used by two threads at once.
    """

    def __init__(self, encoders: Sequence[Encoder]) -> None:
        self.depth = len(encoders)
        """Batches that are encoded at the same time at most."""
        self._idle: queue.SimpleQueue[Encoder] = queue.SimpleQueue()
        for encoder in encoders:
            self._idle.put(encoder)
        self._pool = ThreadPoolExecutor(len(encoders), thread_name_prefix="hf-encode")
        self._ahead: dict[tuple[str, ...], Future[Encoded]] = {}

    def encode_prepared(self, prepared: Sequence[Prepared]) -> Mapping[str, Any]:
        """The processor's output for prompts that are no jobs. What encoding raises, this raises."""
        encoder = self._idle.get()
        try:
            return dict(encoder.process([each.text for each in prepared], prepared))
        finally:
            self._idle.put(encoder)

    def start(self, jobs: Sequence[Job]) -> None:
        """Begin to encode a batch."""
        self._ahead[_ids(jobs)] = self._pool.submit(self._encode, jobs)

    def get(self, jobs: Sequence[Job]) -> Encoded:
        """The encoded batch. What encoding raises, this raises."""
        future = self._ahead.pop(_ids(jobs), None)
        return self._encode(jobs) if future is None else future.result()

    def forget(self, jobs: Sequence[Job]) -> None:
        """The batch will not be asked for."""
        future = self._ahead.pop(_ids(jobs), None)
        if future is not None:
            future.cancel()

    def close(self) -> None:
        self._ahead.clear()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _encode(self, jobs: Sequence[Job]) -> Encoded:
        encoder = self._idle.get()
        try:
            return encoder.encode(jobs)
        finally:
            self._idle.put(encoder)


def _ids(jobs: Sequence[Job]) -> tuple[str, ...]:
    return tuple(job.request.id for job in jobs)


class Window:
    """Jobs that are held but not begun, and the batches planned from them.

    Args:
        shape: what a batch may be now.
        lookahead: encodes what is planned.
    """

    def __init__(self, shape: Callable[[], Shape[Job]], lookahead: Lookahead) -> None:
        self._shape = shape
        self._lookahead = lookahead
        self._waiting: list[Job] = []
        self._planned: deque[list[Job]] = deque()

    def __len__(self) -> int:
        return len(self._waiting) + sum(map(len, self._planned))

    @property
    def nbytes(self) -> int:
        """Size of the media that is held."""
        batches = [self._waiting, *self._planned]
        return sum(job.request.payload_bytes for batch in batches for job in batch)

    def add(self, job: Job) -> None:
        self._waiting.append(job)

    def next_batch(self) -> list[Job]:
        """The batch to be run now; those after it are planned and begun to be encoded. Empty if nothing is held."""
        while self._waiting and len(self._planned) <= self._lookahead.depth:
            batch = pick_batch(self._waiting, self._shape())
            if self._planned and not is_full(batch, self._waiting, self._shape()):
                break  # more requests may come before it is its turn
            chosen = {job.request.id for job in batch}
            self._waiting = [job for job in self._waiting if job.request.id not in chosen]
            self._planned.append(batch)
            self._lookahead.start(batch)
        return self._planned.popleft() if self._planned else []

    def plan_anew(self) -> None:
        """The shape of batches has changed: what was planned is taken back."""
        for batch in self._planned:
            self._lookahead.forget(batch)
        self._waiting = [job for batch in self._planned for job in batch] + self._waiting
        self._planned.clear()
