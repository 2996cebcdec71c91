"""Sizes of prepared requests, learnt task by task: how much room to keep for one that is not prepared yet."""

from __future__ import annotations

from dataclasses import dataclass

from lmms_eval.api.request import Request

FIRST_GUESS_BYTES = 1 << 16
"""Assumed size of a prepared request until one has been seen."""


class RequestSizes:
    """Expected sizes in bytes; not safe from several threads."""

    def __init__(self) -> None:
        self._guess = FIRST_GUESS_BYTES
        self._tasks: dict[str, _TaskSizes] = {}

    def expected(self, request: Request | None) -> int:
        """Guess the size of a request, or of one that is not known yet."""
        known = None if request is None else self._tasks.get(request.task.name)
        return self._guess if request is None or known is None else known.expected(request.cost)

    def begin(self, request: Request) -> bool:
        """Note that a request is about to be prepared; false if nothing is known of its task."""
        known = self._tasks.get(request.task.name)
        if known is not None:
            known.begin(request.cost)
        return known is not None

    def finish(self, request: Request, size: int | None) -> None:
        """Note the size of a prepared request; ``None`` for one that came to nothing."""
        known = self._tasks.setdefault(request.task.name, _TaskSizes(request.cost))
        if size is not None:
            known.add(size)
        self._guess = known.recent


@dataclass(slots=True)
class _TaskSizes:
    """Sizes of one task's prepared requests, in bytes."""

    cost: float
    """Of the request that was begun last. Costs fall within a window, so one that rises begins a new window."""
    recent: int = FIRST_GUESS_BYTES
    """The largest one, less a tenth for each that has come since."""
    largest: int = 0

    def expected(self, cost: float) -> int:
        return max(self.largest, self.recent) if cost > self.cost else self.recent

    def begin(self, cost: float) -> None:
        self.recent, self.cost = self.expected(cost), cost

    def add(self, size: int) -> None:
        self.recent = max(size, int(self.recent * 0.9), 1) if self.largest else max(size, 1)
        self.largest = max(self.largest, self.recent)
