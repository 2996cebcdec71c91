"""Runs checks in worker processes: gives each one job at a time, and replaces a process that hangs or dies."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import chain, groupby
from typing import Any

import orjson
from msgspec import Struct, field

from lmms_eval.api.task import Task, TaskOptions
from lmms_eval.checks.findings import OFFLINE, CheckReport, Checks, Finding, What
from lmms_eval.errors import TaskError
from lmms_eval.processes import Child, ChildError, Pool
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.yaml.included import included_folders
from lmms_eval.tasks.yaml.loader import encode
from lmms_eval.tasks.yaml.task import TaskSource
from lmms_eval.utils.records import to_dict


class CheckJob(Struct, frozen=True):
    """A check of a task, group or model."""

    what: What
    name: str
    file: str
    spec: Mapping[str, Any] = field(default_factory=dict)
    """A task's ``Task.spec``, or a model's name and arguments."""

    @property
    def place(self) -> str:
        """The folder of a task's file, since tasks of one folder share code; otherwise the kind of job."""
        return self.file.rpartition("/")[0] if self.what == "task" else self.what


def task_job(spec: Mapping[str, Any]) -> CheckJob:
    """Make a job from a task's ``spec``. The worker opens the documents itself, and knows the included folders."""
    return CheckJob("task", spec["name"], spec["file"], {**spec, "documents": None, "included": []})


def model_job(
    name: str,
    arguments: str | Mapping[str, Any],
    plugins: Sequence[str] = (),
    force_simple: bool = False,
    **built: int | str | None,
) -> CheckJob:
    """Make a job for a model. ``built``: ``batch_size`` and ``device``."""
    spec = {"name": name, "arguments": arguments, "plugins": list(plugins), "force_simple": force_simple}
    return CheckJob("model", name, "", {"batch_size": 1, "device": None, **spec, **built})


def jobs_of(catalogue: Catalogue, names: Sequence[str], options: TaskOptions) -> Iterator[CheckJob]:
    """Make the jobs for names, or for everything outside packs without names. This imports no task code.

    A group is one job. After it has been checked, its members become jobs if they are not jobs already.
    """
    chosen = catalogue.match(names) if names else catalogue.own_names()
    members = dict.fromkeys(member for name in chosen for member in catalogue.tagged(name) or [name])
    found = [entry for name in members if (entry := catalogue.entry(name)) is not None]
    for entry in sorted(found, key=lambda entry: entry.kind != "group"):
        if entry.pack:
            catalogue.packs[entry.pack].use()
        if entry.kind == "group":
            yield CheckJob("group", entry.name, str(entry.file))
        else:
            base = entry.bare_name if entry.pack else ""
            yield task_job(spec_of(TaskSource(entry.name, str(entry.file), {}, {}, base=base), options))


def spec_of(source: TaskSource, options: TaskOptions) -> dict[str, Any]:
    """Describe a task that is not built yet in the form of ``Task.spec``."""
    return {
        "name": source.name,
        "file": source.file,
        "overrides": encode(source.overrides or {}),
        "standalone": source.standalone,
        "change": source.change,
        "base": source.base,
        "documents": None,
        "options": to_dict(options),
        "included": [],
    }


STARTING_S = 120.0
"""Seconds to start an interpreter and import the packages."""
MOST_PROCESSES = 16
"""Most processes, because each one imports the same packages."""
LARGEST_SHARE = 100
"""Most jobs of one folder that a process takes at once, so that processes share a folder of many tasks."""

Outcome = tuple[CheckJob, CheckReport, list[Mapping[str, Any]]]
"""A job, its report, and the ``spec`` of each member of a group."""


class CheckOptions(Struct, frozen=True):
    """Settings of a check."""

    timeout_s: float = 60.0
    """Most seconds for each task or model."""
    documents: int = 3
    """Number of first documents that are tried."""
    processes: int = 2
    include_paths: Sequence[str] = ()
    plugins: Sequence[str] = ()
    tasks: TaskOptions = field(default_factory=TaskOptions)
    verbosity: str = "ERROR"


def run_checks(jobs: Iterable[CheckJob], options: CheckOptions) -> Checks:
    """Check tasks, groups and models in worker processes. The report is in the order of the jobs.

    Code that raises, exits, crashes or hangs affects its own job only. The tasks of a group are checked after it.
    """
    begin = time.monotonic()
    reports: dict[tuple[What, str], CheckReport | None] = {}
    waiting: set[Future[list[Outcome]]] = set()
    pool = Pool()
    executor = ThreadPoolExecutor(max(1, options.processes), thread_name_prefix="check")

    def check_share(share: Sequence[CheckJob]) -> list[Outcome]:
        return [_check(job, pool, options) for job in share]

    def submit(jobs: Iterable[CheckJob]) -> None:
        new = {key: job for job in jobs if (key := (job.what, job.name)) not in reports}
        reports.update(dict.fromkeys(new))
        waiting.update(executor.submit(check_share, share) for share in _shares(new.values()))

    try:
        submit(jobs)
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for job, report, members in chain.from_iterable(future.result() for future in done):
                reports[job.what, job.name] = report
                submit(task_job(spec) for spec in members)
    except BaseException:  # re-raised, also a KeyboardInterrupt: the processes must not stay
        pool.kill()
        raise
    finally:
        executor.shutdown(cancel_futures=True)
        pool.close()
    checked = tuple(report for report in reports.values() if report is not None)
    return Checks(checked, time.monotonic() - begin, min(options.processes, len(checked)))


def _shares(jobs: Iterable[CheckJob]) -> list[list[CheckJob]]:
    """Divide jobs into shares of one folder each. Groups come first, since they may add tasks.

    Then come the largest shares, so that all processes end together.
    """
    by_place = groupby(sorted(jobs, key=lambda job: job.place), lambda job: job.place)
    found = [list(part) for _, part in by_place]
    shares = [part[start : start + LARGEST_SHARE] for part in found for start in range(0, len(part), LARGEST_SHARE)]
    return sorted(shares, key=lambda share: (share[0].what != "group", -len(share)))


def _check(job: CheckJob, pool: Pool, options: CheckOptions) -> Outcome:
    """Check a job in this thread's process of the pool, so that the tasks of a folder are checked by one process."""
    begin = time.monotonic()
    step = "start"
    try:
        with pool.lend(lambda: _start(options), threading.get_ident()) as child:
            child.send(orjson.dumps({"what": job.what, "name": job.name, "spec": job.spec}))
            message = orjson.loads(child.receive(STARTING_S))
            deadline = time.monotonic() + options.timeout_s
            while "step" in message:
                step = message["step"]
                message = orjson.loads(child.receive(max(0.01, deadline - time.monotonic())))
    except ChildError as error:
        cause, kind = f"the process ended with code {error.code}", "ends the process"
        text = f"{cause}: its code exits or crashes the interpreter"
        if error.code is None:
            cause, kind = f"no end within {options.timeout_s:g} s", "hangs"
            text = f"{cause}; --timeout SECONDS gives more"
        message = {"findings": [to_dict(Finding(step, "failed", kind, cause, text))], "members": []}
    found = tuple(Finding(**record) for record in message["findings"])
    return job, CheckReport(job.name, job.what, job.file, found, time.monotonic() - begin), message["members"]


def _start(options: CheckOptions) -> Child:
    first = {
        "documents": options.documents,
        "include_paths": list(options.include_paths),
        "included": included_folders(),
        "plugins": list(options.plugins),
        "options": to_dict(options.tasks),
        "verbosity": options.verbosity,
    }
    return Child(
        "lmms_eval.checks.worker", {**OFFLINE, "TOKENIZERS_PARALLELISM": "false"}, first=orjson.dumps(first),
        errors="shown" if options.verbosity == "DEBUG" else "discarded",
    )  # fmt: skip


def check_tasks(catalogue: Catalogue, names: Sequence[str], options: CheckOptions) -> Checks:
    """Check tasks and groups by name. Without names, check the whole catalogue and report the files it cannot read.

    Raises ``UsageError`` if a name is unknown.
    """
    checks = run_checks(jobs_of(catalogue, names, options.tasks), options)
    if names:
        return checks
    unread = tuple(
        CheckReport(str(file), "file", str(file), (Finding("yaml", "failed", "task file wrong", reason, reason),))
        for file, reason in sorted(catalogue.broken.items())
    )
    return Checks(unread + checks.checked, checks.seconds, checks.processes)


def check_run(tasks: Iterable[Task], options: CheckOptions) -> Checks:
    """Check the tasks of a run with their own settings. Tasks made of Python objects are left out."""
    jobs = []
    for task in tasks:
        with contextlib.suppress(TaskError):  # not made from a file, so no other process can build it
            jobs.append(task_job(task.spec()))
    return run_checks(jobs, options)
