"""The tools: they start, watch, read and cancel evaluations."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from lmms_eval.config.convert import argument_text
from lmms_eval.errors import EvaluationServerError, LmmsEvalError, RequestError, UnknownNameError, UsageError
from lmms_eval.server.mcp.answers import (
    MOST_BYTES,
    CancelRun,
    Evaluate,
    GetModelInfo,
    GetRunResult,
    GetRunStatus,
    GetTaskInfo,
    ListModels,
    ListTasks,
    ModelInfo,
    ModelList,
    RunResult,
    RunSample,
    RunStatus,
    Score,
    TaskInfo,
    TaskList,
    cut,
    readable,
    size,
    task_progress,
)
from lmms_eval.server.mcp.jobs import Jobs
from lmms_eval.server.mcp.names import Names
from lmms_eval.server.store import FINAL

_AT_ONCE = 50


Page = tuple[list[RunSample], int | None, str]
"""Samples of one answer, the offset of the next ones, and a note."""
Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""Reports progress to the caller: amount done, total, and a message."""
AUTO_WAIT_S = 10.0
"""Seconds that ``mode="auto"`` waits at most."""
_LOOK_S = 0.25
_REPORT_S = 1.0
_NEXT = {
    "queued": "it waits for its turn; ask get_run_status again, cancel_run withdraws it",
    "running": "it is in progress; ask get_run_status again, get_run_result for its scores once it is completed",
    "completed": "get_run_result returns samples too",
    "failed": "it has ended without scores; the error says why; evaluate starts another one",
    "cancelled": "it was cancelled; evaluate starts another one",
}


async def read_samples(jobs: Jobs, asked: GetRunResult, tasks: Sequence[str | None]) -> Page:
    """Read samples from an offset that counts through the tasks. Long texts and the size of the answer are limited.

    ``tasks`` are the names of the run's tasks; ``None`` is the only task of a run whose task names are not known yet.
    Raises ``LmmsEvalError`` if the samples cannot be read.
    """
    samples: list[RunSample] = []
    taken = passed = 0
    for task in tasks:
        within = max(asked.sample_offset - passed, 0)
        while True:
            found = await jobs.samples(asked.run_id, task, within, min(_AT_ONCE, asked.sample_limit))
            for record in found["samples"]:
                sample = RunSample(task=found["task"], content=cut(record))
                taken += size(sample.content)
                is_full = len(samples) == asked.sample_limit
                if is_full or (samples and taken > MOST_BYTES):
                    note = "" if is_full else f"an answer holds {MOST_BYTES} bytes of samples: ask for the others"
                    return samples, asked.sample_offset + len(samples), note
                samples.append(sample)
            within += len(found["samples"])
            if not found["samples"] or within >= found["total"]:
                break
        passed += found["total"]
    is_beyond = not samples and asked.sample_offset >= passed > 0
    return samples, None, f"there are {passed} samples" if is_beyond else ""


class Toolbox:
    """The tools as methods, for jobs of this machine or of a server elsewhere, and this machine's tasks and models."""

    def __init__(self, jobs: Jobs, names: Names) -> None:
        self.jobs, self.names = jobs, names

    async def list_tasks(self, asked: ListTasks) -> TaskList:
        only = await self.jobs.task_names()
        return await asyncio.to_thread(self.names.tasks, (asked.query or "").strip(), only)

    async def get_task_info(self, asked: GetTaskInfo) -> TaskInfo:
        return await asyncio.to_thread(self.names.task, asked.task_name)

    async def list_models(self, asked: ListModels) -> ModelList:
        only = await self.jobs.model_names()
        found = await asyncio.to_thread(self.names.models, asked.include_aliases)
        if only is None:
            return found
        kept = [line for line in found.models if line.name in only]
        return ModelList(models=kept, total=len(kept))

    async def get_model_info(self, asked: GetModelInfo) -> ModelInfo:
        return await asyncio.to_thread(self.names.model, asked.model_name)

    async def evaluate(self, asked: Evaluate, client: str, report: Report) -> RunStatus:
        """Submit a run for a client, whose address is empty if the call did not come over the network."""
        if await self.jobs.task_names() is None:
            try:
                await asyncio.to_thread(self.names.check, asked.model, asked.tasks)
            except UnknownNameError as unknown:
                tool = "list_models" if unknown.kind == "model" else "list_tasks"
                raise UsageError(f"{unknown}; {tool} lists the names") from unknown
        body = asked.model_dump(exclude={"mode", "wait_timeout_s"}, exclude_none=True)
        run_id = await self.jobs.submit(body, client)
        patience = {"async": 0.0, "auto": min(AUTO_WAIT_S, asked.wait_timeout_s), "sync": asked.wait_timeout_s}
        try:
            await self._wait(run_id, patience[asked.mode], report)
            return await self._status(run_id)
        except LmmsEvalError as error:
            raise UsageError(f"run {run_id} was submitted; ask get_run_status for its state: {error}") from error

    async def get_run_status(self, asked: GetRunStatus) -> RunStatus:
        return await self._status(asked.run_id)

    async def get_run_result(self, asked: GetRunResult) -> RunResult:
        job = await self.jobs.job(asked.run_id)
        models = await self._models(job)
        if not models and not asked.include_samples:
            reason = f": {job['error']}" if job.get("error") else f" ({_NEXT[job['status']]})"
            raise RequestError(f"run {asked.run_id} is {job['status']}: it has no scores{reason}")
        note = "" if models else f"it is {job['status']}: it has samples but no scores yet"
        result = RunResult(run_id=asked.run_id, status=job["status"], scores=_scores(models), note=note)
        if not asked.include_samples:
            return result
        tasks: list[str | None] = [name for found in models.values() for name in found["n_samples"]]
        if not tasks:
            progress = await self.jobs.progress(asked.run_id)
            tasks = [one.name for one in progress.tasks] if progress is not None else []
        tasks = tasks or [None]
        samples, next_offset, more = await read_samples(self.jobs, asked, tasks)
        note = "; ".join(part for part in (note, more) if part)
        return result.model_copy(update={"samples": samples, "next_offset": next_offset, "note": note})

    async def cancel_run(self, asked: CancelRun) -> RunStatus:
        job = await self.jobs.job(asked.run_id)
        if job["status"] in FINAL:
            raise RequestError(f"run {asked.run_id} has ended: it is {job['status']}; there is nothing to cancel")
        await self.jobs.cancel(asked.run_id)
        found = await self._status(asked.run_id)
        if found.status in FINAL:
            return found
        text = "it is being cancelled; ask get_run_status until it has ended"
        return found.model_copy(update={"is_being_cancelled": True, "message": text})

    async def _wait(self, run_id: str, patience_s: float, report: Report) -> None:
        # The first report comes at once: a client that loses this call knows the run's id.
        begin, reported_at = time.monotonic(), -math.inf
        while (now := time.monotonic()) - begin < patience_s:
            job = await self.jobs.job(run_id)
            if job["status"] in FINAL:
                return
            if now - reported_at >= _REPORT_S:
                reported_at = now
                progress = await self.jobs.progress(run_id) if job["status"] == "running" else None
                done = f", {progress.done} of {progress.requested} documents done" if progress is not None else ""
                await report(now - begin, patience_s, f"run {run_id} is {job['status']}{done}")
            await asyncio.sleep(_LOOK_S)

    async def _models(self, job: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the scores by model; empty if the run has none yet."""
        try:
            return await self.jobs.scores(job["job_id"])
        except (UsageError, EvaluationServerError):
            if job["status"] == "completed":
                raise
            return {}

    async def _status(self, run_id: str) -> RunStatus:
        job = await self.jobs.job(run_id)
        status = job["status"]
        progress = await self.jobs.progress(run_id) if status == "running" else None
        scores = _scores(await self.jobs.scores(run_id)) if status == "completed" else []
        is_cancelled = bool(job.get("is_being_cancelled"))
        request = job["request"]
        return RunStatus(
            run_id=run_id,
            status=status,
            is_being_cancelled=is_cancelled,
            message="it is being cancelled; ask again" if is_cancelled else _NEXT[status],
            model=readable(str(request["model"])),
            model_args=readable(argument_text(request["model_args"])),
            tasks=[readable(str(name)) for name in request["tasks"]],
            position_in_queue=job["position_in_queue"],
            created_at=job["created_at"],
            started_at=job["started_at"],
            completed_at=job["completed_at"],
            progress={} if progress is None else {one.name: task_progress(one) for one in progress.tasks},
            scores=scores,
            error=None if job["error"] is None else readable(job["error"]),
        )


def _scores(models: Mapping[str, Any]) -> list[Score]:
    return [Score(**row, higher_is_better=row["higher"]) for found in models.values() for row in found["scores"]]
