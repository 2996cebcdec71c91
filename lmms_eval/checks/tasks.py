"""Checks of the tasks of a catalogue, and of the tasks of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lmms_eval.api.task import Task
from lmms_eval.checks.findings import Checked, Checks, Finding
from lmms_eval.checks.jobs import Job, jobs_of, task_job
from lmms_eval.checks.workers import CheckOptions, run_checks
from lmms_eval.errors import TaskError
from lmms_eval.tasks.catalogue import Catalogue


def check_tasks(catalogue: Catalogue, names: Sequence[str], options: CheckOptions) -> Checks:
    """Check the tasks and groups of some names; without names all of a catalogue, and the files it cannot read.

    Raises:
        UsageError: a name is unknown.
    """
    checks = run_checks(jobs_of(catalogue, names, options.tasks), options)
    if names:
        return checks
    unread = tuple(
        Checked(str(file), "file", str(file), (Finding("yaml", "failed", "task file wrong", reason, reason),))
        for file, reason in sorted(catalogue.broken.items())
    )
    return Checks(unread + checks.checked, checks.seconds, checks.processes)


def check_run(tasks: Iterable[Task], options: CheckOptions) -> Checks:
    """Check the tasks of a run, whose settings they bring along; those made of Python objects are left out."""
    return run_checks(_jobs_of_run(tasks), options)


def _jobs_of_run(tasks: Iterable[Task]) -> list[Job]:
    jobs = []
    for task in tasks:
        try:
            jobs.append(task_job(task.spec()))
        except TaskError:  # not made from a file: no other process can build it
            continue
    return jobs
