"""The service below the HTTP endpoints: it checks, stores and runs submissions, and describes jobs."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lmms_eval.config.convert import argument_mapping
from lmms_eval.errors import BusyError, LmmsEvalError, UsageError
from lmms_eval.http.guard import Rates, retry_after
from lmms_eval.recipes.recipe import read as read_recipe
from lmms_eval.server.choices import ModelChoices, TaskChoices
from lmms_eval.server.policy import Policy
from lmms_eval.server.requests import check_options, read_body, unknown_name
from lmms_eval.server.scheduler import Room, Scheduler
from lmms_eval.server.settings import ServerSettings
from lmms_eval.server.store import Job, Submission, open_store
from lmms_eval.tasks.yaml.settings import generation_mistake
from lmms_eval.utils.launch import count_gpus
from lmms_eval.utils.plugins import plugin_task_folders


class FolderInUseError(UsageError):
    """Another server uses the same folder."""


class NoJobError(UsageError):
    """The job does not exist."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"Job {job_id[:80]} not found")


class Service:
    """An evaluation server without its network interface.

    Raises:
        UsageError: the folder cannot be created, another server uses it (``FolderInUseError``), or the tasks, models
            or data that the settings name do not exist.
        JobStoreError: the list of jobs cannot be opened.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        # What the settings name must exist before any job needs it.
        places = [("include_path", path) for path in settings.include_paths]
        places += [("data_root", settings.data_root)] if settings.data_root else []
        for name, path in places:
            if not Path(path).is_dir():
                raise UsageError(f"--{name} {path}: the folder does not exist")
        plugin_task_folders(settings.plugins)
        jobs = settings.folder.absolute() / "jobs"
        try:
            settings.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            jobs.mkdir(mode=0o700, exist_ok=True)
            self._lock = os.open(settings.folder / "server.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise UsageError(
                f"the server's folder {settings.folder} cannot be used: {error.strerror or error}"
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            text = f"another server uses the folder {settings.folder}: give this one its own"
            raise FolderInUseError(text) from error
        self.policy = Policy.of(settings)
        self.store = open_store(settings.folder.absolute(), jobs)
        parallel = settings.parallel or max(1, len(settings.gpus))
        room = Room(settings.gpus, parallel, count_gpus(os.environ), os.cpu_count() or 1)
        self.scheduler = Scheduler(self.store, settings, jobs, room)
        self._rates = Rates(settings.submissions_per_minute, settings.submissions_per_minute / 60)
        self.tasks = TaskChoices(settings.include_paths, settings.plugins)
        self.models = ModelChoices(settings.plugins)

    def start(self) -> None:
        self.scheduler.start()

    def stop(self) -> None:
        self.scheduler.stop(self.settings.leave_running)
        self.store.close()
        os.close(self._lock)

    def submit(self, body: bytes, key: str | None = None, client: str = "") -> Submission:
        """Check and store a submission, given as JSON.

        Args:
            body: the request.
            key: a submission that is repeated with the same key is the same job.
            client: address of the client; its rate of submissions is limited.

        Raises:
            BusyError: the queue is full, or the client submits too often.
            RequestError: the body is wrong, asks for what is not allowed, or repeats a key with another request.
            LmmsEvalError: the disk cannot be written.
        """
        if wait_s := self._rates.take(client):
            text = f"this client submits too often (--submissions_per_minute): wait {retry_after(wait_s)} s"
            raise BusyError(text, wait_s, is_clients=True)
        request = read_body(body)
        self.policy.check(request)
        check_options(request)
        self._check_names(request)
        return self.scheduler.submit(request, key)

    def _check_names(self, request: Mapping[str, Any]) -> None:
        """Check that model, arguments, tasks and recipe exist, unless the request brings code that may define them.

        Raises ``InvalidBodyError``; the message suggests similar names.
        """
        if any(request.get(name) for name in ("plugins", "include_path")):
            return
        model = str(request["model"])
        arguments = argument_mapping(request.get("model_args"), "model_args")
        generation = argument_mapping(request.get("gen_kwargs"), "gen_kwargs")
        checks: dict[str, Callable[[], object]] = {
            "model": lambda: self.models.check(model),
            "model_args": lambda: self.models.check_arguments(model, arguments),
            "tasks": lambda: self.tasks.check(map(str, request["tasks"])),
            "gen_kwargs": lambda: _check_generation(generation),
        }
        if recipe := request.get("recipe"):
            checks["recipe"] = lambda: read_recipe(str(recipe))
        for field, check in checks.items():
            try:
                check()
            except LmmsEvalError as error:
                raise unknown_name(field, error) from None

    def job(self, job_id: str) -> Job:
        """Find a job. Raises ``NoJobError``."""
        job = self.store.get(job_id)
        if job is None:
            raise NoJobError(job_id)
        return job

    def cancel(self, job_id: str) -> Job:
        """Cancel a job that has not ended, and return it. Raises ``LmmsEvalError``."""
        job = self.scheduler.cancel(job_id)
        if job is None:
            raise NoJobError(job_id)
        return job

    def described(self, job: Job) -> dict[str, Any]:
        """Describe a job for clients."""
        return {
            "job_id": job.job_id,
            "status": job.state,
            "created_at": job.created_at,
            "started_at": job.started_at,
            "completed_at": job.completed_at,
            "request": dict(job.request),
            "result": job.result,
            "error": job.error,
            "position_in_queue": self.store.position(job),
        }

    def queue(self) -> Mapping[str, Any]:
        """Describe the queue for clients."""
        queued, running = self.store.of_state("queued"), self.store.of_state("running")
        counts = self.store.counts()
        return {
            "queue_size": len(queued),
            "running_job": running[0].job_id if running else None,
            "queued_jobs": [job.job_id for job in queued],
            "completed_jobs": counts.get("completed", 0),
            "failed_jobs": counts.get("failed", 0),
            "running_jobs": [job.job_id for job in running],
        }


def _check_generation(given: Mapping[str, Any]) -> None:
    """Raise ``UsageError`` if a generation option is misspelt or has a wrong value."""
    if mistake := generation_mistake(given):
        raise UsageError(mistake)
