"""Which requests share a batch, and what happens to a batch that raises."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from lmms_eval.api.request import ErrorKind
from lmms_eval.errors import ModelError

T = TypeVar("T")
R = TypeVar("R")

RECOVERABLE = (
    ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, OSError, RuntimeError, TypeError,
    ValueError,
)  # fmt: skip
"""What processors and models raise for an input that they cannot take."""
_OUT_OF_MEMORY = ("out of memory", "not enough memory", "can't allocate memory", "cannot allocate memory")
_LOST_DEVICE = ("cuda error", "device-side assert", "hip error", "cublas_status_execution_failed")


class RefusedError(Exception):
    """This back end cannot answer a request, whatever batch it is in."""


@dataclass(frozen=True, slots=True)
class Failed(Generic[T]):
    """An item that failed alone."""

    item: T
    kind: ErrorKind
    message: str


@dataclass(frozen=True, slots=True)
class Shape(Generic[T]):
    """How items are put into batches: only those with equal ``key`` together, the longest first."""

    key: Callable[[T], Hashable]
    tokens: Callable[[T], float]
    max_rows: int
    max_tokens: float = float("inf")
    """Rows times longest row at most; a single item may be longer."""


def plan_batches(items: Sequence[T], shape: Shape[T]) -> list[list[T]]:
    """Batches of like items, so that little is padded."""
    groups: dict[Hashable, list[T]] = {}
    for item in items:
        groups.setdefault(shape.key(item), []).append(item)
    batches: list[list[T]] = []
    for group in groups.values():
        ordered = sorted(group, key=shape.tokens, reverse=True)
        start = 0
        while start < len(ordered):
            longest = max(shape.tokens(ordered[start]), 1.0)
            rows = int(max(1, min(shape.max_rows, shape.max_tokens // longest, len(ordered) - start)))
            batches.append(ordered[start : start + rows])
            start += rows
    return batches


class HalvingRunner(Generic[T, R]):
    """Runs a batch; one that raises is halved until what raises stands alone, and only that fails."""

    def __init__(self, work: Callable[[Sequence[T]], list[R]], release: Callable[[], None]) -> None:
        self._work = work
        self._release = release
        self.out_of_memory = 0
        """Batches of more than one row that did not fit."""

    def run(self, batch: Sequence[T], on_out_of_memory: Callable[[Sequence[T]], None]) -> Iterator[list[R] | Failed[T]]:
        """Results batch by batch, and the items that failed alone.

        Raises:
            ModelError: the device is lost, so that no later batch can succeed in this process.
        """
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
        """The error is turned into text here, so that its traceback holds no tensors when memory is released."""
        try:
            return self._work(batch)
        except RefusedError as error:
            return Failed(batch[0], "bad_request", str(error))
        except RECOVERABLE as error:
            text = f"{type(error).__name__}: {error}"
            if is_out_of_memory(error):
                return Failed(batch[0], "out_of_memory", f"the request alone does not fit into memory: {text}")
            if any(sign in text.lower() for sign in _LOST_DEVICE):
                raise ModelError(f"hf: the device is lost, start the run again to go on: {text}") from error
            return Failed(batch[0], "internal", text)


def is_out_of_memory(error: BaseException) -> bool:
    """Memory of the device or of the host ran out."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error).lower() for sign in _OUT_OF_MEMORY)
