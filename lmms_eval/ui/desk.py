"""All that the page can do: what its endpoints call, without HTTP."""

from __future__ import annotations

import json
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from lmms_eval.config.convert import argument_mapping
from lmms_eval.config.option import RUNNING
from lmms_eval.errors import LmmsEvalError, RequestError
from lmms_eval.http.guard import Guard
from lmms_eval.server.answers import NoJobError
from lmms_eval.server.command import environment
from lmms_eval.server.contents import Runs, page_of
from lmms_eval.server.folder import JobFolder
from lmms_eval.server.job import Job
from lmms_eval.server.outcome import output_of, records, results_files
from lmms_eval.server.progress import JobsProgress
from lmms_eval.server.service import Service
from lmms_eval.ui import commands, described
from lmms_eval.ui.models import ModelChoices
from lmms_eval.ui.options import OptionChoice, option_choices
from lmms_eval.ui.pages import Order, PageMaker, Pages, file_of, name_of
from lmms_eval.ui.preview import (
    NOT_TAKEN,
    SERVER_DEFAULTS,
    Imported,
    Preview,
    Problem,
    as_request,
    preview,
    read_request,
)
from lmms_eval.ui.tasks import TaskChoices
from lmms_eval.ui.views import Views
from lmms_eval.utils.installed import package_version

_CODE = ("allow_unsafe_code", "include_path", "plugins", "trust_remote_code")
"""Options that the server takes only when it was started with code allowed."""

_MOST_FORMS = 64
_COMPARISON = re.compile(r"[0-9a-f]{20}")
_GPUS = OptionChoice(
    "num_gpus", RUNNING, "whole number", 1, (), "GPUs of the run; above 1 with a process on each", "N", is_usual=True
)


class Desk:
    """The page's view of a service.

    Args:
        service: runs the jobs.
        guard: who may ask.
        views: live views of jobs.
    """

    def __init__(self, service: Service, guard: Guard, views: Views) -> None:
        self.service, self.guard, self._views = service, guard, views
        settings = service.settings
        self.models = ModelChoices(settings.plugins)
        self._environment = environment(os.environ, None)
        self._pages = PageMaker(self._environment)
        self._compared = settings.folder.absolute() / "comparisons"
        self._lock = threading.Lock()
        self._runs, self._progress = Runs(), JobsProgress()
        self._previews: OrderedDict[str, Preview] = OrderedDict()

    @cached_property
    def tasks(self) -> TaskChoices:
        with self._lock:
            return TaskChoices(self.service.settings.include_paths, self.service.settings.plugins)

    def offer(self) -> dict[str, Any]:
        """Tell the models and options that can be chosen."""
        refused = {*NOT_TAKEN, *(() if self.service.settings.allow_code else _CODE)}
        gpus = self.service.settings.gpus
        options = option_choices(refused, SERVER_DEFAULTS)
        return {
            "version": package_version("lmms_eval") or "",
            "models": [asdict(one) for one in self.models.all()],
            "options": [asdict(one) for one in (_GPUS, *options)[0 if len(gpus) > 1 else 1 :]],
            "gpus": list(gpus),
        }

    def preview(self, request: Mapping[str, Any]) -> Preview:
        """Show a request in other forms, with all that this server would refuse."""
        shown = preview(request, self._refused)
        return replace(shown, problems=shown.problems or tuple(self._unknown(request)))

    def read_request(self, text: str) -> Imported:
        """Read the text of a configuration file as a request, without what this server would refuse."""
        return read_request(text, self._refused)

    def _unknown(self, request: Mapping[str, Any]) -> Iterator[Problem]:
        """Mistakes in names: of the model, its arguments that must be given, and tasks."""
        try:
            details = self.models.details(str(request.get("model")))
        except LmmsEvalError as error:
            yield Problem("model", str(error))
        else:
            given = argument_mapping(request.get("model_args"), "model_args")
            for one in details.arguments:
                names = {one.name, *one.other_names}
                if one.is_required and not any(given.get(name) or name in details.fixed for name in names):
                    yield Problem("model_args", f"model_args: {details.name} needs the argument {one.name}")
        for name in request.get("tasks") or ():
            try:
                self.tasks.check(str(name))
            except LmmsEvalError as error:
                yield Problem("tasks", str(error))

    def _refused(self, request: Mapping[str, Any]) -> Iterator[Problem]:
        try:
            self.service.policy.check(as_request(request))
        except RequestError as error:
            yield Problem(re.split(r"[.:]", str(error), maxsplit=1)[0], str(error))

    def task_choices(self) -> list[dict[str, Any]]:
        return [asdict(one) for one in self.tasks.all()]

    def machine(self) -> list[str]:
        """Tell what ``lmms-eval doctor`` finds. Raises ``LmmsEvalError``."""
        return commands.output_of(["doctor"], self._environment).splitlines()

    def missing(self, task: str) -> list[str]:
        """Try the data and packages of a task. Raises ``LmmsEvalError``."""
        self.tasks.details(task)  # a name that is none costs no process
        settings = self.service.settings
        places = ["--data_root", settings.data_root] if settings.data_root else []
        for path in settings.include_paths:
            places += ["--include-path", path]
        return commands.missing_of(task, places, self._environment)

    def jobs(self) -> list[dict[str, Any]]:
        """List all jobs, those submitted first at the front."""
        store = self.service.store
        found = store.of_state("queued", "running", "completed", "failed", "cancelled")
        return [described.entry(job, store.position(job)) for job in found]

    def job(self, job_id: str) -> dict[str, Any]:
        """Describe a job. Raises ``NoJobError``."""
        job = self._job(job_id)
        folder = JobFolder(Path(job.folder))
        is_going = job.state == "running"
        snapshot = self._progress.look(job_id, records(job, folder)).snapshot if is_going else None
        return {
            **described.details(job, self.service.store.position(job), self._forms(job)),
            "progress": None if snapshot is None else described.progress(snapshot),
            "can_view": is_going and output_of(job, folder).is_dir(),
        }

    def _forms(self, job: Job) -> Preview:
        """The request of a job in other forms, which stay."""
        with self._lock:
            found = self._previews.pop(job.job_id, None) or preview(described.as_draft(job.request))
            self._previews[job.job_id] = found
            while len(self._previews) > _MOST_FORMS:
                self._previews.popitem(last=False)
        return found

    def view(self, job_id: str) -> ASGIApp:
        """The live view of a job. Raises ``NoJobError``, ``DataError``."""
        job = self._job(job_id)
        return self._views.app(output_of(job, JobFolder(Path(job.folder))))

    def log(self, job_id: str, place: int) -> dict[str, Any]:
        """Read on in a job's log. Raises ``NoJobError``, ``RequestError``."""
        try:
            return described.log_piece(self._job(job_id), place)
        except OSError as error:
            raise RequestError(f"the log cannot be read: {error.strerror or error}") from error

    def start(self, request: Mapping[str, Any], key: str | None, client: str) -> dict[str, Any]:
        """Submit a job. Raises ``LmmsEvalError`` where it is refused."""
        wanted = as_request(request)
        submission = self.service.submit(json.dumps(wanted).encode(), key, client)
        return {"job_id": submission.job.job_id, "command": preview(wanted).command}

    def submitted(self, key: str) -> str | None:
        """Find the job of a submission."""
        found = self.service.store.of_key(key)
        return None if found is None else found.job_id

    def make_pages(self, job_ids: Any) -> Pages:
        """Make the pages of ended jobs. Raises ``NoJobError``, ``RequestError``, ``UsageError``."""
        if not isinstance(job_ids, list) or not all(isinstance(one, str) for one in job_ids):
            raise RequestError("jobs: give a list of the names of jobs")
        jobs = [self._job(one) for one in dict.fromkeys(job_ids)]
        name = name_of([job.job_id for job in jobs])
        folder = _pages_of(jobs[0]) if len(jobs) == 1 else self._compared / name
        return self._pages.make(Order(name, folder, [_results_folder(job) for job in jobs]))

    def page_file(self, name: str, path: str) -> Path | None:
        """Find a file of the pages of a job, or of several compared."""
        job = self.service.job(name)
        if job is not None:
            return file_of(_pages_of(job), path)
        return file_of(self._compared / name, path) if _COMPARISON.fullmatch(name) else None

    def runs(self) -> list[dict[str, Any]]:
        """List the jobs of this server that have results."""
        jobs = self.service.store.of_state("completed", "failed", "cancelled")
        return [described.entry(job, 0) for job in jobs if results_files(job, JobFolder(Path(job.folder)))]

    def results(self, job_id: str) -> dict[str, Any]:
        """Tell the scores of a job's run. Raises ``NoJobError``."""
        job = self._job(job_id)
        files = results_files(job, JobFolder(Path(job.folder)))
        return {"job_id": job_id, "scores": described.scores(files[-1]) if files else []}

    def samples(self, job_id: str, task: str, offset: int, limit: int) -> dict[str, Any]:
        """Read samples of a task. Raises ``NoJobError``, ``RequestError``, ``DataError``."""
        job = self._job(job_id)
        return page_of(self._runs.of(job, JobFolder(Path(job.folder))), task, offset, limit, None)

    def _job(self, job_id: str) -> Job:
        job = self.service.job(job_id)
        if job is None:
            raise NoJobError(job_id)
        return job


def _pages_of(job: Job) -> Path:
    return Path(job.folder) / "pages"


def _results_folder(job: Job) -> Path:
    """The output folder of an ended job. Raises ``RequestError`` where there are no results."""
    folder = JobFolder(Path(job.folder))
    if not job.has_ended or not results_files(job, folder):
        raise RequestError(f"the evaluation {job.job_id} has no results: it is {job.state}")
    return output_of(job, folder)
