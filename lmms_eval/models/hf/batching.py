"""Selecting the requests of a batch, and handling batches that fail."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from time import perf_counter
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.api.request import ErrorKind, Response
from lmms_eval.errors import ModelError

T = TypeVar("T")
R = TypeVar("R")

RECOVERABLE = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, MemoryError, OSError, RuntimeError,
    TypeError, ValueError,
)  # fmt: skip
"""Exceptions of processors and models for invalid inputs."""
_OUT_OF_MEMORY = ("out of memory", "not enough memory", "can't allocate memory", "cannot allocate memory")
_LOST_DEVICE = ("cuda error", "device-side assert", "hip error", "cublas_status_execution_failed")


AUTO_BATCH_SIZE = 8
"""The initial number of rows of ``batch_size=auto``."""
_AUTO_MAX_ROWS = 256
_ROOM_TO_DOUBLE = 0.45
"""A batch may be doubled if it uses at most this share of the device's memory."""


class RefusedError(Exception):
    """The back end cannot answer a request, in any batch."""

    def __init__(self, message: str, kind: ErrorKind = "bad_request") -> None:
        super().__init__(message)
        self.kind = kind


class Failed(Struct, Generic[T], frozen=True):
    """An item that failed alone."""

    item: T
    kind: ErrorKind
    message: str


class Shape(Struct, Generic[T], frozen=True):
    """The rules of batches: items with equal ``key``, the longest first."""

    key: Callable[[T], Hashable]
    tokens: Callable[[T], float]
    max_rows: int
    max_tokens: float = float("inf")
    """The limit of rows times the longest row. A single item may be longer."""
    near: Callable[[T], float] | None = None
    """The length that decides which items share a batch; default: ``tokens``."""


def pick_batch(waiting: Sequence[T], shape: Shape[T]) -> list[T]:
    """Return a batch of the first item and those of similar length with the same key, the longest first.

    The batch always contains the item that has waited longest, so no item waits forever.
    """
    first = waiting[0]
    key, length = shape.key(first), shape.tokens(first)
    others = [item for item in waiting[1:] if shape.key(item) == key]
    batch, longest = [first], max(length, 1.0)
    near = shape.near or shape.tokens
    place = near(first)
    for item in sorted(others, key=lambda item: abs(near(item) - place)):
        longest = max(longest, shape.tokens(item))
        if len(batch) >= shape.max_rows or (len(batch) + 1) * longest > shape.max_tokens:
            break
        batch.append(item)
    return sorted(batch, key=shape.tokens, reverse=True)


def is_full(batch: Sequence[T], waiting: Sequence[T], shape: Shape[T]) -> bool:
    """Return whether more requests could not enlarge the batch: it has all rows, or left out items with its key."""
    key = shape.key(batch[0])
    return len(batch) >= shape.max_rows or sum(shape.key(item) == key for item in waiting) > len(batch)


class RowLimit:
    """The maximum number of rows. With ``probes``, it is doubled until a batch fills the memory."""

    def __init__(self, rows: int, probes: bool = False) -> None:
        self.rows = rows
        self._probes = probes

    def fitted(self, rows: int, used: float | None) -> None:
        """Record an answered batch of ``rows``, with the used share of the device's memory if known."""
        if not self._probes or rows < self.rows:
            return
        if used is None or used > _ROOM_TO_DOUBLE or self.rows >= _AUTO_MAX_ROWS:
            self._probes = False
        else:
            self.rows *= 2

    def did_not_fit(self) -> None:
        self._probes = False


class HalvingRunner(Generic[T, R]):
    """Runs batches. A batch that fails is halved until only the items that cause the failure fail."""

    def __init__(self, work: Callable[[Sequence[T]], list[R]], release: Callable[[], None]) -> None:
        self._work = work
        self._release = release
        self.out_of_memory = 0
        """The number of batches with several rows that did not fit into memory."""

    def run(self, batch: Sequence[T], on_out_of_memory: Callable[[Sequence[T]], None]) -> Iterator[list[R] | Failed[T]]:
        """Yield the results of batches, and single failed items. Raises ``ModelError`` if the device is lost."""
        waiting = [list(batch)]
        while waiting:
            current = waiting.pop()
            outcome = self._attempt(current)
            if not isinstance(outcome, Failed):
                yield outcome
                continue
            no_memory = outcome.kind == "out_of_memory"
            if no_memory:
                self._release()
            if len(current) == 1:
                yield outcome
                continue
            if no_memory:
                self.out_of_memory += 1
                on_out_of_memory(current)
            half = (len(current) + 1) // 2
            waiting += [current[half:], current[:half]]

    def _attempt(self, batch: Sequence[T]) -> list[R] | Failed[T]:
        """Run a batch. An error is converted to text here, so that no traceback keeps tensors in memory."""
        try:
            return self._work(batch)
        except RefusedError as error:
            return Failed(batch[0], error.kind, str(error))
        except RECOVERABLE as error:
            text = f"{type(error).__name__}: {error}"
            if is_out_of_memory(error):
                return Failed(batch[0], "out_of_memory", f"the request alone does not fit into memory: {text}")
            if is_lost_device(error):
                raise ModelError(f"hf: the device is lost, start the run again to resume: {text}") from error
            return Failed(batch[0], "internal", text)


def timed_responses(
    runner: HalvingRunner[Any, Response], batch: Sequence[Any], on_out_of_memory: Callable[[Sequence[Any]], None]
) -> Iterator[Response]:
    """Run a batch of jobs, which have a ``request``, and yield the responses with the time since its start."""
    started = perf_counter()
    for outcome in runner.run(batch, on_out_of_memory):
        if isinstance(outcome, Failed):
            outcome = [Response.failure(outcome.item.request.id, outcome.kind, outcome.message)]
        for response in outcome:
            yield replace(response, latency=perf_counter() - started)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether the device or the host is out of memory."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error).lower() for sign in _OUT_OF_MEMORY)


def is_lost_device(error: BaseException) -> bool:
    """Return whether the device is lost, so that no later batch can succeed in this process."""
    text = f"{type(error).__name__}: {error}".lower()
    return any(sign in text for sign in _LOST_DEVICE)
