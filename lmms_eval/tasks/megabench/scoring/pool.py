"""The evaluator's workers: a thread of this process, or several worker processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from msgspec.structs import replace

from lmms_eval.errors import LmmsEvalError
from lmms_eval.processes import Child, ChildError, Pool
from lmms_eval.tasks.megabench.metrics.values import NO_DATA, OutsideData
from lmms_eval.tasks.megabench.scoring.worker import TaskJob, results_from_line, score_job, to_line

MODULE = "lmms_eval.tasks.megabench.scoring.worker"
TASK_LIMIT_S = 1800.0
"""Limit for scoring a task. Exceeding it is an error, since every metric has a far lower limit."""


class ScoringStopped(LmmsEvalError):
    """A worker process ended or hung."""


Scores = Sequence[Mapping[str, Any]]
"""Results of a job's queries."""


class ScorePool:
    """Scores jobs, ``workers`` at a time. A single worker is a thread of this process.

    ``expected`` jobs will come: their processes start at once, and import what they need before the first job is there.
    """

    def __init__(
        self, workers: int, allow_unsafe_code: bool = False, data: OutsideData = NO_DATA, expected: int = 0
    ) -> None:
        self._allow_unsafe_code, self._data = allow_unsafe_code, data
        self._executor = ThreadPoolExecutor(max_workers=max(1, workers), thread_name_prefix="megabench-score")
        self._in_process = workers <= 1
        self._pool = Pool()
        if not self._in_process:
            self._pool.prepare(min(workers, expected), _start)

    def submit(self, *jobs: TaskJob) -> Future[list[Scores]]:
        """Score the queries of jobs, one job after another in the same worker.

        Raises ``TaskError`` for an unusable configuration.
        """
        for job in jobs:
            job.spec()  # raises the error of an unusable configuration
        with_options = [replace(job, allow_unsafe_code=self._allow_unsafe_code, data=self._data) for job in jobs]
        return self._executor.submit(self._score_here if self._in_process else self._ask, with_options)

    def close(self) -> None:
        """Stop running jobs; queued jobs are not scored."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._pool.kill()
        self._executor.shutdown(wait=True)
        self._pool.close()

    def _score_here(self, jobs: Sequence[TaskJob]) -> list[Scores]:
        return [score_job(job) for job in jobs]

    def _ask(self, jobs: Sequence[TaskJob]) -> list[Scores]:
        found: list[Scores] = []
        try:
            with self._pool.lend(_start) as child:
                for job in jobs:
                    found.append(results_from_line(child.ask(to_line(job), TASK_LIMIT_S)))
        except ChildError as error:
            raise ScoringStopped(f"scoring task {jobs[len(found)].task_name}: {error}") from error
        return found


def _start() -> Child:
    return Child(MODULE)
