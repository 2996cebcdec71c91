"""Clients of an evaluation server: a training loop submits a checkpoint, keeps training, and reads the scores later.

``EvalClient`` blocks; ``AsyncEvalClient`` is for asyncio programs. They use httpx2,
a dependency of ``openai`` and ``huggingface_hub``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, cast

import httpx2

from lmms_eval.errors import EvaluationServerError
from lmms_eval.server import calls
from lmms_eval.server.calls import (
    ENDED_EARLY,
    PATIENCE_S,
    SILENCE_S,
    ArchiveDownload,
    CallReply,
    Exchange,
    Following,
    HttpCall,
    Job,
    JobEvent,
    JobResults,
    ProgressEvent,
    headers,
    limits,
    request,
)

if TYPE_CHECKING:
    from lmms_eval.results.follow import Snapshot


_T = TypeVar("_T")


class EvalClient:
    """Client of an evaluation server; a context manager.

    While the server cannot be reached or is busy, a call is retried for ``patience`` seconds. Each evaluation is
    submitted under a key of its own, so it starts only once even if the first answer is lost.

    Args:
        base_url: the server's address.
        timeout: seconds to wait for an answer; ``None`` for no limit.
        token: the server's token; the default is the environment variable ``LMMS_EVAL_SERVER_TOKEN``.
        patience: seconds of retrying a call.
    """

    def __init__(
        self,
        base_url: str = "http://localhost:8000",
        timeout: float | None = None,
        *,
        token: str | None = None,
        patience: float = PATIENCE_S,
    ) -> None:
        self._patience = patience
        self._http = httpx2.Client(base_url=base_url, timeout=limits(timeout), headers=headers(token))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def health(self) -> dict[str, Any]:
        """Return ``status, timestamp, queue_size``."""
        return self._ask(HttpCall("GET", "/health"), patience=0)

    def is_healthy(self) -> bool:
        try:
            return self.health().get("status") == "healthy"
        except EvaluationServerError:
            return False

    def list_tasks(self) -> list[str]:
        return list(self._ask(HttpCall("GET", "/tasks"))["tasks"])

    def list_models(self) -> list[str]:
        return list(self._ask(HttpCall("GET", "/models"))["models"])

    def evaluate(  # noqa: PLR0913 - a public interface
        self,
        model: str,
        tasks: Sequence[str],
        model_args: dict[str, Any] | None = None,
        num_fewshot: int | None = None,
        batch_size: int | str | None = None,
        device: str | None = None,
        limit: float | None = None,
        gen_kwargs: str | None = None,
        log_samples: bool = True,
        predict_only: bool = False,
        num_gpus: int = 1,
        output_dir: str | None = None,
        *,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Submit an evaluation; returns ``job_id, status, position_in_queue, message``.

        Args:
            limit: number of documents per task, or a share below 1.
            idempotency_key: key of the submission. A second submission with the same key returns the first job.
            options: further options of a run by their names.

        Raises:
            EvaluationServerError: the server refuses, or cannot be reached.
        """
        known = {
            "model_args": model_args,
            "num_fewshot": num_fewshot,
            "batch_size": batch_size,
            "device": device,
            "limit": limit,
            "gen_kwargs": gen_kwargs,
            "log_samples": log_samples,
            "predict_only": predict_only,
            "num_gpus": num_gpus,
            "output_dir": output_dir,
        }
        return self._ask(calls.evaluation(model, tasks, {**known, **options}, idempotency_key))

    def get_job(self, job_id: str) -> Job:
        return self._ask(calls.job(job_id))

    def progress(self, job_id: str) -> Snapshot | None:
        """Return the current progress of a job's run; ``None`` before the run has any."""
        with closing(self.events(job_id)) as events:
            first = next(events, None)  # the first event is the progress, if the run has any
        return first.snapshot if isinstance(first, ProgressEvent) else None

    def cancel_job(self, job_id: str) -> dict[str, Any]:
        return self._ask(calls.cancellation(job_id))

    def wait_for_job(
        self, job_id: str, poll_interval: float = 5.0, timeout: float | None = None, verbose: bool = True
    ) -> Job:
        """Wait until a job is completed, and return it.

        Args:
            poll_interval: seconds between two polls.
            timeout: seconds to wait at most; ``None`` for no limit.
            verbose: log each change of the job's state.

        Raises:
            JobFailedError: the job failed or was cancelled.
            JobTimeoutError: the job is still queued or running after ``timeout`` seconds.
        """
        return self._run(calls.awaited(job_id, self._patience, poll_interval, timeout, verbose))

    def results(self, job_id: str) -> JobResults:
        """Return the scores of a job that has results."""
        return JobResults.read(self._ask(calls.job(job_id, "/results")))

    def samples(
        self, job_id: str, task: str | None = None, offset: int = 0, limit: int = 100, where: str | None = None
    ) -> dict[str, Any]:
        """Return ``total`` and a page of ``samples`` of a task, also while the run continues.

        Args:
            task: optional if the job has only one task.
            where: expression that selects samples, such as ``score < 1``.
        """
        return self._ask(calls.samples(job_id, task, offset, limit, where))

    def events(self, job_id: str, last_event_id: str | None = None) -> Generator[JobEvent, None, None]:
        """Yield the events of a job until it has ended: its states, the progress of its run, its log.

        A lost connection is retried for ``patience`` seconds and resumes after the last event.

        Args:
            last_event_id: the ``event_id`` to resume after; by default the log is sent from its beginning.

        Raises:
            EvaluationServerError: the job does not exist, or the server cannot be reached.
        """
        following = Following(job_id, last_event_id or "", self._patience)
        while not following.has_ended:
            lost: CallReply = ENDED_EARLY
            try:
                with closing(self._http.send(request(self._http, following.call, SILENCE_S), stream=True)) as found:
                    if found.status_code == 200:
                        for one in httpx2.EventSource(found):
                            if (event := following.read(one.event, one.id, one.data)) is not None:
                                yield event
                    else:
                        found.read()
                        lost = found
            except httpx2.TransportError as error:
                lost = error
            if not following.has_ended:
                time.sleep(following.pause(lost))

    def download(self, job_id: str, folder: str | Path) -> list[Path]:
        """Write the files of a job's run into a folder and return their paths.

        Existing files of the same names are replaced. An archive with paths outside of the folder is refused.

        Raises:
            EvaluationServerError: the job does not exist, the server cannot be reached, or the archive cannot be used.
            DataError: the folder cannot be written.
        """
        with ArchiveDownload(Path(folder)) as download:
            self._run(calls.downloaded(job_id, download, self._patience))
            return download.unpack()

    def get_queue_status(self) -> dict[str, Any]:
        """Return ``queue_size, running_job, queued_jobs, completed_jobs, failed_jobs``."""
        return self._ask(HttpCall("GET", "/queue"))

    def merge_checkpoint(
        self,
        checkpoint_path: str,
        output_path: str | None = None,
        checkpoint_type: Literal["regular", "ema"] = "regular",
    ) -> dict[str, Any]:
        """Merge a sharded checkpoint on the server; returns ``success, message, merged_path``."""
        return self._ask(calls.merging(checkpoint_path, output_path, checkpoint_type), patience=0)

    def _ask(self, call: HttpCall, patience: float | None = None) -> dict[str, Any]:
        return self._run(calls.asked(call, self._patience if patience is None else patience))

    def _run(self, exchange: Exchange[_T]) -> _T:
        answer: CallReply | None = None
        while True:
            try:
                step = exchange.send(answer)
            except StopIteration as end:
                return cast(_T, end.value)
            answer = None
            if not isinstance(step, HttpCall):
                time.sleep(step)
                continue
            try:
                with closing(self._http.send(request(self._http, step), stream=True)) as found:
                    if step.target is not None and found.status_code == 200:
                        step.target.begin()
                        for data in found.iter_bytes():
                            step.target.add(data)
                    else:
                        found.read()
                    answer = found
            except httpx2.TransportError as error:
                answer = error


class AsyncEvalClient:
    """``EvalClient`` for asyncio programs; an asynchronous context manager."""

    def __init__(
        self,
        base_url: str = "http://localhost:8000",
        timeout: float | None = None,
        *,
        token: str | None = None,
        patience: float = PATIENCE_S,
    ) -> None:
        self._patience = patience
        self._http = httpx2.AsyncClient(base_url=base_url, timeout=limits(timeout), headers=headers(token))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def health(self) -> dict[str, Any]:
        return await self._ask(HttpCall("GET", "/health"), patience=0)

    async def is_healthy(self) -> bool:
        try:
            return (await self.health()).get("status") == "healthy"
        except EvaluationServerError:
            return False

    async def list_tasks(self) -> list[str]:
        return list((await self._ask(HttpCall("GET", "/tasks")))["tasks"])

    async def list_models(self) -> list[str]:
        return list((await self._ask(HttpCall("GET", "/models")))["models"])

    async def evaluate(
        self, model: str, tasks: Sequence[str], *, idempotency_key: str | None = None, **options: Any
    ) -> dict[str, Any]:
        """Submit an evaluation. ``options`` are the keyword arguments of ``EvalClient.evaluate``."""
        return await self._ask(calls.evaluation(model, tasks, options, idempotency_key))

    async def get_job(self, job_id: str) -> Job:
        return await self._ask(calls.job(job_id))

    async def progress(self, job_id: str) -> Snapshot | None:
        """Return the current progress of a job's run; ``None`` before the run has any."""
        async with aclosing(self.events(job_id)) as events:
            first = await anext(events, None)  # the first event is the progress, if the run has any
        return first.snapshot if isinstance(first, ProgressEvent) else None

    async def cancel_job(self, job_id: str) -> dict[str, Any]:
        return await self._ask(calls.cancellation(job_id))

    async def wait_for_job(
        self, job_id: str, poll_interval: float = 5.0, timeout: float | None = None, verbose: bool = True
    ) -> Job:
        """Wait until a job is completed, as ``EvalClient.wait_for_job`` does."""
        return await self._run(calls.awaited(job_id, self._patience, poll_interval, timeout, verbose))

    async def results(self, job_id: str) -> JobResults:
        """Return the scores of a job that has results."""
        return JobResults.read(await self._ask(calls.job(job_id, "/results")))

    async def samples(
        self, job_id: str, task: str | None = None, offset: int = 0, limit: int = 100, where: str | None = None
    ) -> dict[str, Any]:
        """Return ``total`` and a page of ``samples`` of a task, also while the run continues.

        Args:
            task: optional if the job has only one task.
            where: expression that selects samples, such as ``score < 1``.
        """
        return await self._ask(calls.samples(job_id, task, offset, limit, where))

    async def events(self, job_id: str, last_event_id: str | None = None) -> AsyncGenerator[JobEvent, None]:
        """Yield the events of a job as ``EvalClient.events`` does."""
        following = Following(job_id, last_event_id or "", self._patience)
        while not following.has_ended:
            lost: CallReply = ENDED_EARLY
            try:
                async with aclosing(
                    await self._http.send(request(self._http, following.call, SILENCE_S), stream=True)
                ) as found:
                    if found.status_code == 200:
                        async for one in httpx2.EventSource(found):
                            if (event := following.read(one.event, one.id, one.data)) is not None:
                                yield event
                    else:
                        await found.aread()
                        lost = found
            except httpx2.TransportError as error:
                lost = error
            if not following.has_ended:
                await asyncio.sleep(following.pause(lost))

    async def download(self, job_id: str, folder: str | Path) -> list[Path]:
        """Write the files of a job's run into a folder as ``EvalClient.download`` does."""
        with ArchiveDownload(Path(folder)) as download:
            await self._run(calls.downloaded(job_id, download, self._patience))
            return await asyncio.to_thread(download.unpack)

    async def get_queue_status(self) -> dict[str, Any]:
        return await self._ask(HttpCall("GET", "/queue"))

    async def merge_checkpoint(
        self,
        checkpoint_path: str,
        output_path: str | None = None,
        checkpoint_type: Literal["regular", "ema"] = "regular",
    ) -> dict[str, Any]:
        return await self._ask(calls.merging(checkpoint_path, output_path, checkpoint_type), patience=0)

    async def _ask(self, call: HttpCall, patience: float | None = None) -> dict[str, Any]:
        return await self._run(calls.asked(call, self._patience if patience is None else patience))

    async def _run(self, exchange: Exchange[_T]) -> _T:
        answer: CallReply | None = None
        while True:
            try:
                step = exchange.send(answer)
            except StopIteration as end:
                return cast(_T, end.value)
            answer = None
            if not isinstance(step, HttpCall):
                await asyncio.sleep(step)
                continue
            try:
                async with aclosing(await self._http.send(request(self._http, step), stream=True)) as found:
                    if step.target is not None and found.status_code == 200:
                        step.target.begin()
                        async for data in found.aiter_bytes():
                            step.target.add(data)
                    else:
                        await found.aread()
                    answer = found
            except httpx2.TransportError as error:
                answer = error
