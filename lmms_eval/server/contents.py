"""The contents of a job's run, for clients on other machines: scores and samples."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any

from lmms_eval.errors import DataError, RequestError
from lmms_eval.results.run_reader.document import part_of
from lmms_eval.results.run_reader.run import Run, load
from lmms_eval.results.run_reader.sample import Sample
from lmms_eval.results.run_reader.task import Choice, RunTask
from lmms_eval.server.folder import JobFolder
from lmms_eval.server.job import Job
from lmms_eval.server.outcome import records, result_of
from lmms_eval.utils.where import parse_where
from lmms_eval.viewer.numbers import stated_rows

MOST_SAMPLES = 500
_KEPT_RUNS = 8


def scores_of(job: Job, folder: JobFolder) -> dict[str, Any]:
    """Tell the scores of a job by model. Raises ``DataError`` where there are none, or a file cannot be read."""
    files = result_of(job, folder)
    if not files:
        raise DataError(f"Job {job.job_id} has no results: it is {job.state}")
    return {name: _scores(load(Path(found["results"]))) for name, found in files.items()}


def _scores(run: Run) -> dict[str, Any]:
    document = run.document
    return {
        "date": run.date,
        "state": run.state,
        "scores": [row for name in part_of(document, "results") for row in stated_rows(document, name)],
        "results": part_of(document, "results"),
        "groups": run.groups,
        "n_samples": part_of(document, "n-samples"),
        "outcomes": part_of(document, "outcomes"),
    }


class Runs:
    """The runs that samples were asked of last: their index need not be made for each page."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: OrderedDict[tuple[str, int, int], Run] = OrderedDict()

    def of(self, job: Job, folder: JobFolder) -> list[Run]:
        """Read the runs of a job, finished or not. Raises ``DataError``."""
        files = [Path(found["results"]) for found in result_of(job, folder).values()]
        if files:
            return [self._finished(path) for path in files]
        return [load(record) for record in records(job, folder)]

    def _finished(self, path: Path) -> Run:
        found = path.stat()
        key = str(path), found.st_mtime_ns, found.st_size
        with self._lock:
            run = self._known.pop(key, None) or load(path)
            self._known[key] = run
            while len(self._known) > _KEPT_RUNS:
                self._known.popitem(last=False)
        return run


def page_of(runs: list[Run], task: str | None, offset: int, limit: int, where: str | None) -> dict[str, Any]:
    """Read some samples of one task.

    Raises:
        RequestError: the task must be named, the bounds are wrong.
        UsageError: there is no such task, or the expression is wrong.
    """
    if not (offset >= 0 and 1 <= limit <= MOST_SAMPLES):
        raise RequestError(f"offset: 0 or more; limit: from 1 to {MOST_SAMPLES}")
    if not runs:
        raise DataError("nothing has been answered yet")
    names = [name for run in runs for name in run.tasks]
    if task is None and len(names) != 1:
        raise RequestError(f"task: name one of {', '.join(names)}")
    name = task or names[0]
    run = next((run for run in runs if name in run.tasks), runs[0])
    found = run.task(name)
    if where is None:
        total = len(found)
        chosen = [found.at(number) for number in range(offset, min(offset + limit, total))]
    else:
        total, chosen = _chosen(run, found, offset, limit, where)
    return {"task": name, "offset": offset, "limit": limit, "total": total, "samples": [one.record for one in chosen]}


def _chosen(run: Run, task: RunTask, offset: int, limit: int, where: str) -> tuple[int, list[Sample]]:
    expression = parse_where(where)
    run.check(expression)
    samples: Iterator[Sample] = task.samples(Choice(where=expression))
    passed = sum(1 for _ in islice(samples, offset))
    page = list(islice(samples, limit))
    return passed + len(page) + sum(1 for _ in samples), page
