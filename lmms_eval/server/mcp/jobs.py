"""The jobs behind the tools: of a folder that this process serves, or of an evaluation server elsewhere."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.errors import EvaluationServerError, UsageError
from lmms_eval.results.follow import Snapshot
from lmms_eval.server.client import AsyncEvalClient
from lmms_eval.server.events import JobsProgress
from lmms_eval.server.outcome import page_of, records, runs_of, scores_of
from lmms_eval.server.service import FolderInUseError, NoJobError, Service
from lmms_eval.server.settings import ServerSettings
from lmms_eval.server.store import Job

log = logging.getLogger(__name__)
_NOT_FOUND = 404
_PATIENCE_S = 10.0


class NoRunError(UsageError):
    """The run does not exist."""


class OwnJobs:
    """The jobs of a server's folder, which is opened as soon as no other server uses it.

    Jobs and their parts have the form of ``GET /jobs/ID``. All methods raise ``LmmsEvalError``.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._service: Service | None = None
        self._progress = JobsProgress()

    def open(self) -> Service:
        """Start the service of the folder on the first call. Raises ``UsageError`` if another server uses it."""
        with self._lock:
            if self._service is None:
                try:
                    service = Service(self._settings)
                except FolderInUseError as error:
                    raise FolderInUseError(
                        f"{error} (--folder), end the other one, or connect to it (lmms-eval mcp --server URL)"
                    ) from error
                service.start()
                self._service = service
            return self._service

    async def submit(self, body: Mapping[str, Any], client: str) -> str:
        """Submit a run for a client, given by its address, and return its id."""
        submission = await asyncio.to_thread(lambda: self.open().submit(json.dumps(body).encode(), client=client))
        return submission.job.job_id

    async def job(self, job_id: str) -> Mapping[str, Any]:
        def described() -> Mapping[str, Any]:
            job = self._job(job_id)
            return {**self.open().described(job), "is_being_cancelled": job.is_cancelled and not job.has_ended}

        return await asyncio.to_thread(described)

    async def cancel(self, job_id: str) -> None:
        await asyncio.to_thread(lambda: self.open().cancel(self._job(job_id).job_id))

    async def scores(self, job_id: str) -> Mapping[str, Any]:
        """Return the scores by model."""
        return await asyncio.to_thread(lambda: scores_of(self._job(job_id)))

    async def samples(self, job_id: str, task: str | None, offset: int, limit: int) -> Mapping[str, Any]:
        return await asyncio.to_thread(lambda: page_of(runs_of(self._job(job_id)), task, offset, limit, None))

    async def progress(self, job_id: str) -> Snapshot | None:
        """Return the current progress of a run; ``None`` before it has any."""
        return await asyncio.to_thread(lambda: self._progress.look(job_id, records(self._job(job_id))).snapshot)

    async def task_names(self) -> Sequence[str] | None:
        """List the tasks of the server; ``None`` if they are those of this process."""
        return None

    async def model_names(self) -> Sequence[str] | None:
        return None

    async def close(self) -> None:
        def stop() -> None:
            with self._lock:
                if self._service is not None:
                    self._service.stop()

        await asyncio.to_thread(stop)

    def _job(self, job_id: str) -> Job:
        service = self.open()
        try:
            return service.job(job_id)
        except NoJobError as error:
            queue = service.queue()
            raise NoRunError(_no_run(job_id, [*queue["running_jobs"], *queue["queued_jobs"]])) from error


class ServerJobs:
    """The jobs of an evaluation server (``lmms-eval serve``) that runs elsewhere, with the methods of ``OwnJobs``.

    Args:
        url: address of the server. The environment variable ``LMMS_EVAL_SERVER_TOKEN`` holds its token.
    """

    def __init__(self, url: str) -> None:
        self._client = AsyncEvalClient(url, 60.0, patience=_PATIENCE_S)

    async def submit(self, body: Mapping[str, Any], client: str) -> str:  # noqa: ARG002 - the server limits its own clients
        options = {name: value for name, value in body.items() if name not in ("model", "tasks")}
        return str((await self._client.evaluate(body["model"], body["tasks"], **options))["job_id"])

    async def job(self, job_id: str) -> Mapping[str, Any]:
        try:
            return await self._client.get_job(job_id)
        except EvaluationServerError as error:
            if error.status != _NOT_FOUND:
                raise
            queue = await self._client.get_queue_status()
            going = [*queue.get("running_jobs", ()), *queue["queued_jobs"]]
            raise NoRunError(_no_run(job_id, going)) from error

    async def cancel(self, job_id: str) -> None:
        await self._client.cancel_job(job_id)

    async def scores(self, job_id: str) -> Mapping[str, Any]:
        models: Mapping[str, Any] = (await self._client.results(job_id)).content["models"]
        return models

    async def samples(self, job_id: str, task: str | None, offset: int, limit: int) -> Mapping[str, Any]:
        return await self._client.samples(job_id, task, offset, limit)

    async def progress(self, job_id: str) -> Snapshot | None:
        return await self._client.progress(job_id)

    async def task_names(self) -> Sequence[str] | None:
        return await self._client.list_tasks()

    async def model_names(self) -> Sequence[str] | None:
        return await self._client.list_models()

    async def close(self) -> None:
        await self._client.close()


Jobs = OwnJobs | ServerJobs


def try_to_open(jobs: Jobs) -> None:
    """Resume jobs of an earlier server at once. If another server uses the folder, each later call tries again.

    Raises:
        LmmsEvalError: the folder cannot be used.
    """
    if isinstance(jobs, OwnJobs):
        try:
            jobs.open()
        except FolderInUseError as error:
            log.warning("%s", error)


def _no_run(job_id: str, going: Sequence[str]) -> str:
    known = f"queued or running: {', '.join(going[:20])}" if going else "no run is queued or running"
    return f"run {job_id[:80]!r} does not exist: give an id that evaluate returned; {known}"
