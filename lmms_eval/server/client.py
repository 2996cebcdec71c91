"""Clients of an evaluation server: a training loop submits a checkpoint, goes on training, and asks for the scores.

They run on httpx2, which ``openai`` and ``huggingface_hub`` bring with them.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, cast

import httpx2

from lmms_eval.errors import EvaluationServerError
from lmms_eval.models.openai.errors import retry_after
from lmms_eval.server import calls
from lmms_eval.server.calls import TOKEN_VARIABLE, Call, Job, Reply, Talk
from lmms_eval.server.scores import JobResults

_T = TypeVar("_T")
_CONNECT_S = 10.0
PATIENCE_S = 60.0


class EvalClient:
    """A client of an evaluation server; a context manager.

    A call is tried again while the server cannot be reached or is busy, for ``patience`` seconds. An evaluation is
    submitted under a key of its own, so that it starts once even where the first answer was lost.

    Args:
        base_url: the server's address.
        timeout: seconds to wait for an answer; ``None`` for no limit.
        token: of the server; by default that of the environment variable ``LMMS_EVAL_SERVER_TOKEN``.
        patience: seconds for which a call is tried again.
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
        self._http = httpx2.Client(base_url=base_url, timeout=_limits(timeout), headers=_headers(token))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def health(self) -> dict[str, Any]:
        """Return ``status, timestamp, queue_size``."""
        return self._ask(Call("GET", "/health"), patience=0)

    def is_healthy(self) -> bool:
        try:
            return self.health().get("status") == "healthy"
        except EvaluationServerError:
            return False

    def list_tasks(self) -> list[str]:
        return list(self._ask(Call("GET", "/tasks"))["tasks"])

    def list_models(self) -> list[str]:
        return list(self._ask(Call("GET", "/models"))["models"])

    def evaluate(  # noqa: PLR0913 - the parameters of the family's interface
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
            idempotency_key: names the submission: a second one under the same key returns the first one's job.
            options: further options of a run by their names.

        Raises:
            EvaluationServerError: it was refused, or the server cannot be reached.
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

    def progress(self, job_id: str) -> dict[str, Any]:
        """Return by task the documents ``done`` and ``failed`` of a job that runs; empty before the first ones."""
        with _told_as_errors(), self._http.stream("GET", calls.job(job_id, "/events").path) as reply:
            return calls.first_progress(list(islice(reply.iter_lines(), 2)))

    def cancel_job(self, job_id: str) -> dict[str, Any]:
        return self._ask(calls.cancellation(job_id))

    def wait_for_job(
        self, job_id: str, poll_interval: float = 5.0, timeout: float | None = None, verbose: bool = True
    ) -> Job:
        """Wait until a job is completed, and return it.

        Args:
            poll_interval: seconds between two looks.
            timeout: seconds to wait at most; ``None`` for no limit.
            verbose: log each change of the job's state.

        Raises:
            JobFailedError: it failed or was cancelled.
            JobTimeoutError: it goes on after that time.
        """
        return self._carry_out(calls.awaited(job_id, self._patience, poll_interval, timeout, verbose))

    def results(self, job_id: str) -> JobResults:
        """Return the scores of a job that has results."""
        return JobResults.read(self._ask(calls.job(job_id, "/results")))

    def samples(
        self, job_id: str, task: str | None = None, offset: int = 0, limit: int = 100, where: str | None = None
    ) -> dict[str, Any]:
        """Return ``total`` and a page of ``samples`` of a task, also while the run goes on.

        Args:
            task: may be left out where the job has one.
            where: which samples, such as ``score < 1``.
        """
        return self._ask(calls.samples(job_id, task, offset, limit, where))

    def get_queue_status(self) -> dict[str, Any]:
        """Return ``queue_size, running_job, queued_jobs, completed_jobs, failed_jobs``."""
        return self._ask(Call("GET", "/queue"))

    def merge_checkpoint(
        self,
        checkpoint_path: str,
        output_path: str | None = None,
        checkpoint_type: Literal["regular", "ema"] = "regular",
    ) -> dict[str, Any]:
        """Merge a sharded checkpoint on the server; returns ``success, message, merged_path``."""
        return self._ask(calls.merging(checkpoint_path, output_path, checkpoint_type), patience=0)

    def _ask(self, call: Call, patience: float | None = None) -> dict[str, Any]:
        return self._carry_out(calls.asked(call, self._patience if patience is None else patience))

    def _carry_out(self, talk: Talk[_T]) -> _T:
        reply: Reply | None = None
        while True:
            try:
                step = talk.send(reply)
            except StopIteration as end:
                return cast(_T, end.value)
            reply = None
            if isinstance(step, float):
                time.sleep(step)
                continue
            try:
                reply = _reply(self._http.send(_request(self._http, step)))
            except httpx2.TransportError as error:
                reply = _no_reply(error)


class AsyncEvalClient:
    """The same as ``EvalClient`` for programs on asyncio: an asynchronous context manager."""

    def __init__(
        self,
        base_url: str = "http://localhost:8000",
        timeout: float | None = None,
        *,
        token: str | None = None,
        patience: float = PATIENCE_S,
    ) -> None:
        self._patience = patience
        self._http = httpx2.AsyncClient(base_url=base_url, timeout=_limits(timeout), headers=_headers(token))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def health(self) -> dict[str, Any]:
        return await self._ask(Call("GET", "/health"), patience=0)

    async def is_healthy(self) -> bool:
        try:
            return (await self.health()).get("status") == "healthy"
        except EvaluationServerError:
            return False

    async def list_tasks(self) -> list[str]:
        return list((await self._ask(Call("GET", "/tasks")))["tasks"])

    async def list_models(self) -> list[str]:
        return list((await self._ask(Call("GET", "/models")))["models"])

    async def evaluate(
        self, model: str, tasks: Sequence[str], *, idempotency_key: str | None = None, **options: Any
    ) -> dict[str, Any]:
        """Submit an evaluation; the options as those of ``EvalClient.evaluate``, by their names."""
        return await self._ask(calls.evaluation(model, tasks, options, idempotency_key))

    async def get_job(self, job_id: str) -> Job:
        return await self._ask(calls.job(job_id))

    async def progress(self, job_id: str) -> dict[str, Any]:
        """Return by task the documents ``done`` and ``failed`` of a job that runs; empty before the first ones."""
        lines: list[str] = []
        with _told_as_errors():
            async with self._http.stream("GET", calls.job(job_id, "/events").path) as reply:
                async for line in reply.aiter_lines():
                    lines.append(line)
                    if len(lines) == 2:
                        break
        return calls.first_progress(lines)

    async def cancel_job(self, job_id: str) -> dict[str, Any]:
        return await self._ask(calls.cancellation(job_id))

    async def wait_for_job(
        self, job_id: str, poll_interval: float = 5.0, timeout: float | None = None, verbose: bool = True
    ) -> Job:
        """Wait as ``EvalClient.wait_for_job`` does."""
        return await self._carry_out(calls.awaited(job_id, self._patience, poll_interval, timeout, verbose))

    async def results(self, job_id: str) -> JobResults:
        """Return the scores of a job that has results."""
        return JobResults.read(await self._ask(calls.job(job_id, "/results")))

    async def samples(
        self, job_id: str, task: str | None = None, offset: int = 0, limit: int = 100, where: str | None = None
    ) -> dict[str, Any]:
        """Return ``total`` and a page of ``samples`` of a task, also while the run goes on.

        Args:
            task: may be left out where the job has one.
            where: which samples, such as ``score < 1``.
        """
        return await self._ask(calls.samples(job_id, task, offset, limit, where))

    async def get_queue_status(self) -> dict[str, Any]:
        return await self._ask(Call("GET", "/queue"))

    async def merge_checkpoint(
        self,
        checkpoint_path: str,
        output_path: str | None = None,
        checkpoint_type: Literal["regular", "ema"] = "regular",
    ) -> dict[str, Any]:
        return await self._ask(calls.merging(checkpoint_path, output_path, checkpoint_type), patience=0)

    async def _ask(self, call: Call, patience: float | None = None) -> dict[str, Any]:
        return await self._carry_out(calls.asked(call, self._patience if patience is None else patience))

    async def _carry_out(self, talk: Talk[_T]) -> _T:
        reply: Reply | None = None
        while True:
            try:
                step = talk.send(reply)
            except StopIteration as end:
                return cast(_T, end.value)
            reply = None
            if isinstance(step, float):
                await asyncio.sleep(step)
                continue
            try:
                reply = _reply(await self._http.send(_request(self._http, step)))
            except httpx2.TransportError as error:
                reply = _no_reply(error)


@contextmanager
def _told_as_errors() -> Iterator[None]:
    try:
        yield
    except httpx2.TransportError as error:
        raise EvaluationServerError(f"no answer: {error}") from error


def _limits(timeout: float | None) -> httpx2.Timeout:
    return httpx2.Timeout(timeout, connect=_CONNECT_S if timeout is None else min(_CONNECT_S, timeout))


def _headers(token: str | None) -> dict[str, str]:
    token = os.environ.get(TOKEN_VARIABLE) if token is None else token
    return {"authorization": f"Bearer {token}"} if token else {}


def _request(http: httpx2.Client | httpx2.AsyncClient, call: Call) -> httpx2.Request:
    headers = dict(call.headers) if call.body is None else {**call.headers, "content-type": "application/json"}
    return http.build_request(call.method, call.path, content=call.content, params=call.query, headers=headers)


def _reply(found: httpx2.Response) -> Reply:
    return Reply(found.status_code, found.content, retry_after(found.headers))


def _no_reply(error: httpx2.TransportError) -> Reply:
    return Reply(0, (str(error) or type(error).__name__).encode())
