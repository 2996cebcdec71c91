"""The tools: evaluations are started, watched, read and ended by their ids."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
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
    size,
    task_progress,
    told,
)
from lmms_eval.server.mcp.jobs import Jobs
from lmms_eval.server.mcp.names import Names
from lmms_eval.server.store import FINAL

_AT_ONCE = 50


@dataclass(slots=True)
class Page:
    """Samples of one answer."""

    samples: list[RunSample]
    next_offset: int | None = None
    note: str = ""


async def read_samples(jobs: Jobs, asked: GetRunResult, tasks: Sequence[str | None]) -> Page:
    """Read on from an offset that counts through the tasks; long texts are cut, and the whole is bounded.

    Args:
        tasks: their names; ``None`` for the only one of a run that tells no names.

    Raises:
        LmmsEvalError: they cannot be read.
    """
    page, taken, passed = Page([]), 0, 0
    for task in tasks:
        within = max(asked.sample_offset - passed, 0)
        while True:
            found = await jobs.samples(asked.run_id, task, within, min(_AT_ONCE, asked.sample_limit))
            for record in found["samples"]:
                sample = RunSample(task=found["task"], content=cut(record))
                taken += size(sample.content)
                is_full = len(page.samples) == asked.sample_limit
                if is_full or (page.samples and taken > MOST_BYTES):
                    page.next_offset = asked.sample_offset + len(page.samples)
                    page.note = "" if is_full else f"an answer holds {MOST_BYTES} bytes of samples: ask for the others"
                    return page
                page.samples.append(sample)
            within += len(found["samples"])
            if not found["samples"] or within >= found["total"]:
                break
        passed += found["total"]
    if not page.samples and asked.sample_offset >= passed > 0:
        page.note = f"there are {passed} samples"
    return page


Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""Tells the caller how far it is: so much of how much, and a line."""

AUTO_WAIT_S = 10.0
"""Seconds that ``mode="auto"`` waits at most."""
_LOOK_S = 0.25
_TELL_S = 1.0
_NEXT = {
    "queued": "it waits for its turn; ask get_run_status again, cancel_run takes it back",
    "running": "it goes on; ask get_run_status again, get_run_result for its scores once it is completed",
    "completed": "get_run_result tells samples too",
    "failed": "it has ended without scores; the error says why; evaluate starts another one",
    "cancelled": "it was cancelled; evaluate starts another one",
}


@dataclass(frozen=True, slots=True)
class Caller:
    """Client that calls a tool."""

    address: str
    """Empty where the call has not come over the network."""
    report: Report


class Toolbox:
    """The tools as functions.

    Args:
        jobs: of this machine or of a server elsewhere.
        names: of this machine.
    """

    def __init__(self, jobs: Jobs, names: Names) -> None:
        self.jobs, self.names = jobs, names

    async def list_tasks(self, asked: ListTasks, _caller: Caller) -> TaskList:
        only = await self.jobs.task_names()
        return await asyncio.to_thread(self.names.tasks, (asked.query or "").strip(), only)

    async def get_task_info(self, asked: GetTaskInfo, _caller: Caller) -> TaskInfo:
        return await asyncio.to_thread(self.names.task, asked.task_name)

    async def list_models(self, asked: ListModels, _caller: Caller) -> ModelList:
        only = await self.jobs.model_names()
        found = await asyncio.to_thread(self.names.models, asked.include_aliases)
        if only is None:
            return found
        kept = [line for line in found.models if line.name in only]
        return ModelList(models=kept, total=len(kept))

    async def get_model_info(self, asked: GetModelInfo, _caller: Caller) -> ModelInfo:
        return await asyncio.to_thread(self.names.model, asked.model_name)

    async def evaluate(self, asked: Evaluate, caller: Caller) -> RunStatus:
        if await self.jobs.task_names() is None:
            await self._check_names(asked)
        body = asked.model_dump(exclude={"mode", "wait_timeout_s"}, exclude_none=True)
        run_id = await self.jobs.submit(body, caller.address)
        patience = {"async": 0.0, "auto": min(AUTO_WAIT_S, asked.wait_timeout_s), "sync": asked.wait_timeout_s}
        try:
            await self._wait(run_id, patience[asked.mode], caller.report)
            return await self._status(run_id)
        except LmmsEvalError as error:
            raise UsageError(f"run {run_id} was submitted; ask get_run_status how it is: {error}") from error

    async def get_run_status(self, asked: GetRunStatus, _caller: Caller) -> RunStatus:
        return await self._status(asked.run_id)

    async def get_run_result(self, asked: GetRunResult, _caller: Caller) -> RunResult:
        job = await self.jobs.job(asked.run_id)
        models = await self._models(job)
        if not models and not asked.include_samples:
            error = f": {job['error']}" if job.get("error") else ""
            raise RequestError(f"run {asked.run_id} is {job['status']}: it has no scores{error or _hint(job)}")
        note = "" if models else f"it is {job['status']}: these are the samples that there are, and no scores"
        result = RunResult(run_id=asked.run_id, status=job["status"], scores=_scores(models), note=note)
        if not asked.include_samples:
            return result
        tasks: list[str | None] = [name for told in models.values() for name in told["n_samples"]]
        if not tasks:
            progress = await self.jobs.progress(asked.run_id)
            tasks = [one.name for one in progress.tasks] if progress is not None else []
        tasks = tasks or [None]
        page = await read_samples(self.jobs, asked, tasks)
        more = "; ".join(part for part in (note, page.note) if part)
        return result.model_copy(update={"samples": page.samples, "next_offset": page.next_offset, "note": more})

    async def cancel_run(self, asked: CancelRun, _caller: Caller) -> RunStatus:
        job = await self.jobs.job(asked.run_id)
        if job["status"] in FINAL:
            raise RequestError(f"run {asked.run_id} has ended: it is {job['status']}; there is nothing to cancel")
        await self.jobs.cancel(asked.run_id)
        found = await self._status(asked.run_id)
        if found.status in FINAL:
            return found
        text = "it is being cancelled; ask get_run_status until it has ended"
        return found.model_copy(update={"is_being_cancelled": True, "message": text})

    async def _check_names(self, asked: Evaluate) -> None:
        try:
            await asyncio.to_thread(self.names.check, asked.model, asked.tasks)
        except UnknownNameError as error:
            tool = "list_models" if error.kind == "model" else "list_tasks"
            raise UsageError(f"{error}; {tool} tells the names") from error

    async def _wait(self, run_id: str, patience_s: float, report: Report) -> None:
        begin, told_at = time.monotonic(), -math.inf  # at once: who loses this call can ask for the run
        while (now := time.monotonic()) - begin < patience_s:
            job = await self.jobs.job(run_id)
            if job["status"] in FINAL:
                return
            if now - told_at >= _TELL_S:
                told_at = now
                await report(now - begin, patience_s, f"run {run_id} is {job['status']}{await self._done(job)}")
            await asyncio.sleep(_LOOK_S)

    async def _done(self, job: Mapping[str, Any]) -> str:
        progress = await self.jobs.progress(job["job_id"]) if job["status"] == "running" else None
        return "" if progress is None else f", {progress.done} of {progress.requested} documents done"

    async def _models(self, job: Mapping[str, Any]) -> Mapping[str, Any]:
        """Tell the scores by model; nothing where there are none yet."""
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
            model=told(str(request["model"])),
            model_args=told(argument_text(request["model_args"])),
            tasks=[told(str(name)) for name in request["tasks"]],
            position_in_queue=job["position_in_queue"],
            created_at=job["created_at"],
            started_at=job["started_at"],
            completed_at=job["completed_at"],
            progress={} if progress is None else {one.name: task_progress(one) for one in progress.tasks},
            scores=scores,
            error=None if job["error"] is None else told(job["error"]),
        )


def _hint(job: Mapping[str, Any]) -> str:
    return f" ({_NEXT[job['status']]})"


def _scores(models: Mapping[str, Any]) -> list[Score]:
    names = ("task", "metric", "filter", "value", "stderr", "low", "high", "n")
    rows = [row for found in models.values() for row in found["scores"]]
    return [Score(**{name: row[name] for name in names}, higher_is_better=row["higher"]) for row in rows]
