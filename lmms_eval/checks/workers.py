"""Runs checks in worker processes: gives each one job at a time, and replaces a process that hangs or dies."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import orjson
from msgspec import Struct, field

from lmms_eval.api.task import Task, TaskOptions
from lmms_eval.checks.findings import OFFLINE, CheckReport, Checks, Finding, What
from lmms_eval.errors import TaskError
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.yaml.included import included_folders
from lmms_eval.tasks.yaml.loader import encode
from lmms_eval.tasks.yaml.task import TaskSource
from lmms_eval.utils.line_process import ENDING_S, LineProcess, ProcessEnded
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
    """Make the jobs for names, or for everything in the catalogue without names. This imports no task code.

    A group is one job. After it has been checked, its members become jobs if they are not jobs already.
    """
    chosen = catalogue.match(names) if names else catalogue.names()
    members = (member for name in chosen for member in (catalogue.members(name) if name in catalogue.tags else [name]))
    found = list(dict.fromkeys(members))
    for name in sorted(found, key=lambda name: name not in catalogue.groups):
        if name in catalogue.groups:
            yield CheckJob("group", name, str(catalogue.groups[name].file))
        elif name in catalogue.tasks:
            source = TaskSource(name, str(catalogue.tasks[name].file), {}, {})
            yield task_job(spec_of(source, options))


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

    Code that raises, exits, crashes or hangs affects its own job only.
    """
    begin = time.monotonic()
    agenda = _Agenda(jobs)
    # The members of a group are not known yet. A thread without work starts no process.
    count = options.processes if agenda.may_grow else max(1, min(options.processes, agenda.size))
    threads = [threading.Thread(target=_work, args=(agenda, options), daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    agenda.raise_failure()
    return Checks(tuple(agenda.reports()), time.monotonic() - begin, min(count, agenda.size))


class _Agenda:
    """The jobs, in shares of one folder each, the largest first. Groups add the jobs of their members."""

    def __init__(self, jobs: Iterable[CheckJob]) -> None:
        self._condition = threading.Condition()
        self._order: dict[tuple[str, str], CheckJob] = {}
        self._shares: deque[tuple[CheckJob, ...]] = deque()
        self._reports: dict[tuple[str, str], CheckReport] = {}
        self._taken = 0
        self._failure: BaseException | None = None
        self._add(jobs)

    @property
    def size(self) -> int:
        return len(self._order)

    @property
    def may_grow(self) -> bool:
        return any(job.what == "group" for job in self._order.values())

    def _add(self, jobs: Iterable[CheckJob]) -> None:
        new = [job for job in jobs if (job.what, job.name) not in self._order]
        self._order.update({(job.what, job.name): job for job in new})
        by_place = [tuple(found) for _, found in groupby(sorted(new, key=lambda job: job.place), lambda job: job.place)]
        shares = [
            found[start : start + LARGEST_SHARE] for found in by_place for start in range(0, len(found), LARGEST_SHARE)
        ]
        # Groups come first, since they may add tasks; then the largest shares, so that all processes end together.
        self._shares.extend(sorted(shares, key=lambda share: (share[0].what != "group", -len(share))))

    def take(self) -> tuple[CheckJob, ...]:
        """Return the next share, which is empty when everything is done."""
        with self._condition:
            while not self._shares and self._taken and self._failure is None:
                self._condition.wait()
            if not self._shares or self._failure is not None:
                return ()
            self._taken += 1
            return self._shares.popleft()

    def note(self, job: CheckJob, report: CheckReport, members: Sequence[Mapping[str, Any]]) -> None:
        with self._condition:
            self._reports[job.what, job.name] = report
            self._add(task_job(spec) for spec in members)
            self._condition.notify_all()

    def finished(self, failure: BaseException | None = None) -> None:
        """Record that a share is done."""
        with self._condition:
            self._taken -= 1
            self._failure = self._failure or failure
            self._condition.notify_all()

    def raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def reports(self) -> list[CheckReport]:
        return [self._reports[key] for key in self._order]


def _work(agenda: _Agenda, options: CheckOptions) -> None:
    worker = _Worker(options)
    try:
        while share := agenda.take():
            failure: BaseException | None = None
            try:
                for job in share:
                    report, members = worker.check(job)
                    agenda.note(job, report, members)
            except Exception as error:  # noqa: BLE001 - raised again in the thread that waits
                failure = error
            finally:
                agenda.finished(failure)
    finally:
        worker.close()


class _Worker:
    """Checks jobs in a process, and starts a new one after a process that ended or had to be killed."""

    def __init__(self, options: CheckOptions) -> None:
        self._options = options
        self._process: LineProcess | None = None

    def check(self, job: CheckJob) -> tuple[CheckReport, list[Mapping[str, Any]]]:
        begin = time.monotonic()
        step = "start"
        try:
            process = self._started()
            process.send(orjson.dumps({"what": job.what, "name": job.name, "spec": job.spec}))
            message = orjson.loads(process.receive(STARTING_S))
            deadline = time.monotonic() + self._options.timeout_s
            while "step" in message:
                step = message["step"]
                message = orjson.loads(process.receive(max(0.01, deadline - time.monotonic())))
        except ProcessEnded as ended:
            self.close(by_force=True)
            message = {"findings": [to_dict(_of_end(step, ended, self._options.timeout_s))], "members": []}
        found = tuple(Finding.of_record(record) for record in message["findings"])
        return CheckReport(job.name, job.what, job.file, found, time.monotonic() - begin), message["members"]

    def _started(self) -> LineProcess:
        if self._process is None or self._process.has_ended:
            self.close()
            options = self._options
            environment = {**OFFLINE, "TOKENIZERS_PARALLELISM": "false"}
            self._process = LineProcess("lmms_eval.checks.worker", environment, quiet=options.verbosity != "DEBUG")
            start = {
                "documents": options.documents,
                "include_paths": list(options.include_paths),
                "included": included_folders(),
                "plugins": list(options.plugins),
                "options": to_dict(options.tasks),
                "verbosity": options.verbosity,
            }
            self._process.send(orjson.dumps(start))
        return self._process

    def close(self, by_force: bool = False) -> None:
        if self._process is not None:
            if by_force:
                self._process.kill()
            self._process.close(patience_s=2 * ENDING_S)
            self._process = None


def _of_end(step: str, ended: ProcessEnded, timeout_s: float) -> Finding:
    if ended.code is None:
        cause = f"no end within {timeout_s:g} s"
        return Finding(step, "failed", "hangs", cause, f"{cause}; --timeout SECONDS gives more")
    cause = f"the process ended with code {ended.code}"
    return Finding(step, "failed", "ends the process", cause, f"{cause}: its code exits or crashes the interpreter")


def check_tasks(catalogue: Catalogue, names: Sequence[str], options: CheckOptions) -> Checks:
    """Check tasks and groups by name. Without names, check the whole catalogue and report the files it cannot read.

    Raises:
        UsageError: a name is unknown.
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
