"""A pool of children: each job has a child for itself, and a job that hangs or crashes its child fails alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from lmms_eval.processes.child import ENDING_S, Child, ChildError

Started = TypeVar("Started", bound=Child)


class Pool:
    """Children that are lent for one job at a time, from any thread.

    A job takes an idle child, or starts one. If the job raises, its child is killed, and a later job starts another.
    After a fork, both processes have children of their own.

    Args:
        most_jobs: a child is replaced after so many jobs.
    """

    def __init__(self, most_jobs: int | None = None) -> None:
        self._most_jobs = most_jobs
        self._lock = threading.Lock()
        self._idle: list[Child] = []
        self._busy: set[Child] = set()
        self._is_killed = False

    @property
    def pids(self) -> list[int]:
        """Process ids of the children."""
        with self._lock:
            return [child.pid for child in (*self._idle, *self._busy)]

    @contextmanager
    def lend(self, start: Callable[[], Started], kind: Hashable = None) -> Iterator[Started]:
        """Lend a child for one job.

        Args:
            start: starts a child if none is idle; whatever it raises is raised here.
            kind: children are only used again for jobs of the same kind.

        Raises:
            ChildError: the pool was killed.
        """
        child = self._take(kind) or start()
        child.kind = kind
        try:
            with self._lock:
                self._busy.add(child)
            if self._is_killed:
                raise ChildError("the pool of processes was closed")
            yield child  # type: ignore[misc]  # children of one kind are started by the same function
        except BaseException:
            child.kill()
            self._release(child)
            child.close()
            raise
        child.jobs += 1
        self._release(child, to=self._idle)

    def kill(self) -> None:
        """Kill all children at once, those at work too. The pool takes no more jobs; ``close`` must still be called."""
        with self._lock:
            self._is_killed = True
            children = [*self._idle, *self._busy]
        for child in children:
            child.kill()

    def close(self, patience_s: float = 2 * ENDING_S) -> None:
        """End the idle children, and kill those that have not ended after ``patience_s`` seconds."""
        with self._lock:
            children, self._idle = self._idle, []
        for child in children:
            child.end_input()
        for child in children:
            child.close(patience_s)

    def _take(self, kind: Hashable) -> Child | None:
        """Take an idle child of a kind. Those that died, did their share or belong to another process are ended."""
        with self._lock:
            most = self._most_jobs
            usable = [
                child
                for child in self._idle
                if child.is_own and not child.has_ended and (most is None or child.jobs < most)
            ]
            worn = [child for child in self._idle if child not in usable]
            found = next((child for child in usable if child.kind == kind), None)
            self._idle = [child for child in usable if child is not found]
        for child in worn:
            child.kill()
            child.close()
        return found

    def _release(self, child: Child, to: list[Child] | None = None) -> None:
        with self._lock:
            self._busy.discard(child)
            if to is not None:
                to.append(child)
