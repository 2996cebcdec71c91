"""The evaluator's workers: a thread of this process, or several worker processes."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from msgspec.structs import replace

from lmms_eval.errors import LmmsEvalError
from lmms_eval.tasks.megabench.outside_data import NO_DATA, OutsideData
from lmms_eval.tasks.megabench.scoring.worker import TaskJob, results_from_line, score_job, to_line
from lmms_eval.utils.line_process import LineProcess, ProcessEnded

MODULE = "lmms_eval.tasks.megabench.scoring.worker"
TASK_LIMIT_S = 1800.0
"""Limit for scoring a task. Exceeding it is an error, since every metric has a far lower limit."""


class ScoringStopped(LmmsEvalError):
    """A worker process ended or hung."""


class ScorePool:
    """Scores jobs, ``workers`` at a time. A single worker is a thread of this process."""

    def __init__(self, workers: int, allow_unsafe_code: bool = False, data: OutsideData = NO_DATA) -> None:
        self._allow_unsafe_code, self._data = allow_unsafe_code, data
        self._executor = ThreadPoolExecutor(max_workers=max(1, workers), thread_name_prefix="megabench-score")
        self._in_process = workers <= 1
        self._own = threading.local()
        self._started: list[LineProcess] = []

    def submit(self, job: TaskJob) -> Future[Sequence[Mapping[str, Any]]]:
        """Score a job's queries. The result raises ``TaskError`` for an unusable configuration."""
        job.spec()  # raises the error of an unusable configuration
        job = replace(job, allow_unsafe_code=self._allow_unsafe_code, data=self._data)
        return self._executor.submit(score_job if self._in_process else self._ask, job)

    def close(self) -> None:
        """Stop running jobs; queued jobs are not scored."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        for process in self._started:
            process.kill()
        self._executor.shutdown(wait=True)
        for process in self._started:
            process.close()

    def _ask(self, job: TaskJob) -> Sequence[Mapping[str, Any]]:
        process: LineProcess | None = getattr(self._own, "process", None)
        if process is None:
            process = self._own.process = LineProcess(MODULE)
            self._started.append(process)
        try:
            process.send(to_line(job))
            return results_from_line(process.receive(TASK_LIMIT_S))
        except ProcessEnded as ended:
            self._own.process = None
            raise ScoringStopped(f"scoring task {job.task_name}: {ended}") from ended
