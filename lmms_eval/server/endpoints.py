"""Endpoints of the server: submit, watch and cancel jobs, read their results, list what the server offers."""

from __future__ import annotations

import mimetypes
import platform
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from lmms_eval.errors import (
    BusyError,
    DataError,
    JobStoreError,
    JournalError,
    LmmsEvalError,
    MissingOptionalDependencyError,
    RefusedRequestError,
    RepeatedKeyError,
    RequestError,
    UsageError,
)
from lmms_eval.http.guard import retry_after
from lmms_eval.server.command import KINDS, MergeRequest, NoCheckpointError, merge, shards_of
from lmms_eval.server.events import Feeds
from lmms_eval.server.job_log import JobLog
from lmms_eval.server.outcome import files_of, named_files, page_of, runs_of, scores_of, zip_stream
from lmms_eval.server.policy import without_paths
from lmms_eval.server.requests import InvalidBodyError, body_type
from lmms_eval.server.service import NoJobError, Service
from lmms_eval.server.store import Job, now
from lmms_eval.utils.addresses import is_loopback
from lmms_eval.utils.installed import git, package_version
from lmms_eval.utils.redaction import redact, redact_text

_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")
_LONGEST_KEY = 200
_PACKAGES = ("torch", "accelerate", "transformers", "vllm")
_NO_SNIFFING = {"X-Content-Type-Options": "nosniff"}
_MOST_LINES = 100_000


class WrongStateError(UsageError):
    """The job is not in the state that the request needs."""


_STATUSES: tuple[tuple[type[LmmsEvalError], int], ...] = (
    (NoJobError, 404),
    (NoCheckpointError, 404),
    (WrongStateError, 400),
    (RefusedRequestError, 403),
    (RepeatedKeyError, 409),
    (MissingOptionalDependencyError, 501),
    (JobStoreError, 507),
    (JournalError, 507),
    (DataError, 404),
    (UsageError, 400),
    (LmmsEvalError, 500),
)


def is_local(request: Request) -> bool:
    """Return whether the client is on this machine, and not behind a proxy on this machine."""
    host = request.client.host if request.client is not None else ""
    return is_loopback(host) and not any(name in request.headers for name in _FORWARDED)


def readable(text: str, request: Request) -> str:
    """Return a text without secrets, and for clients on other machines without this machine's paths."""
    text = redact_text(text)
    return text if is_local(request) else without_paths(text)


def answer_error(request: Request, error: Exception) -> JSONResponse:
    """Answer with the status and text of an error of this package."""
    if isinstance(error, InvalidBodyError):
        details: list[dict[str, Any]] = [{**one, "msg": readable(str(one["msg"]), request)} for one in error.details]
        return JSONResponse({"detail": details}, 422)
    if isinstance(error, BusyError):
        headers = {"retry-after": retry_after(error.retry_after)}
        return JSONResponse({"detail": str(error)}, 429 if error.is_clients else 503, headers)
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
    return JSONResponse({"detail": readable(str(error), request)}, status)


def service_of(request: Request) -> Service:
    """Return the service of the application."""
    service: Service = request.app.state.service
    return service


def job_of(request: Request, job_id: str) -> Job:
    """Find a job. Raises ``NoJobError``."""
    return service_of(request).job(job_id)


def health(request: Request) -> dict[str, Any]:
    """Report that the server answers, and how many jobs are queued."""
    counts = service_of(request).store.counts()
    return {"status": "healthy", "timestamp": now(), "queue_size": counts.get("queued", 0)}


async def evaluate(request: Request) -> JSONResponse:
    """Submit a job. With a header ``Idempotency-Key``, a repeated submission returns the same job."""
    body, key = await request.body(), request.headers.get("idempotency-key")
    if key is not None and not 1 <= len(key) <= _LONGEST_KEY:
        raise RequestError(f"Idempotency-Key: from 1 to {_LONGEST_KEY} characters")
    client = request.client.host if request.client else ""
    submission = await run_in_threadpool(service_of(request).submit, body, key, client)
    job, position = submission.job, submission.position
    message = f"Job queued successfully. Position in queue: {position}"
    if not submission.is_new:
        message = f"Job was submitted before with this key; it is {job.state}"
    return JSONResponse({"job_id": job.job_id, "status": job.state, "position_in_queue": position, "message": message})


def job(request: Request, job_id: str) -> dict[str, Any]:
    """Describe a job: state, request, result or error. On other machines, files have their names in ``files``."""
    found = job_of(request, job_id)
    described = service_of(request).described(found)
    described["request"] = redact(described["request"])
    if described["error"] is not None:
        described["error"] = readable(described["error"], request)
    if not is_local(request):
        described["result"] = named_files(found)
    return described


def cancel(request: Request, job_id: str) -> JSONResponse:
    """Cancel a job. A queued one ends at once, a running one as soon as its processes are gone."""
    before = job_of(request, job_id)
    if before.has_ended:
        raise WrongStateError(f"Job {job_id} has ended: it is {before.state}")
    after = service_of(request).cancel(job_id)
    if after.state == "cancelled":
        return JSONResponse({"message": f"Job {job_id} cancelled"})
    if after.has_ended:
        raise WrongStateError(f"Job {job_id} has ended: it is {after.state}")
    return JSONResponse({"message": f"Job {job_id} is being cancelled"}, 202)


def queue(request: Request) -> dict[str, Any]:
    """List the running and queued jobs, and count the ended ones."""
    return dict(service_of(request).queue())


def tasks(request: Request) -> dict[str, Any]:
    """List the names of tasks, groups and tags."""
    return {"tasks": service_of(request).tasks.catalogue.names()}


def models(request: Request) -> dict[str, Any]:
    """List the names of models."""
    return {"models": [model.model_id for model in service_of(request).models.listed]}


def merge_checkpoint(request: Request, body: MergeRequest) -> dict[str, Any]:
    """Merge the shards of an FSDP checkpoint into one file of weights."""
    policy = service_of(request).policy
    checkpoint = policy.check_path("checkpoint_path", body.checkpoint_path)
    shards = shards_of(checkpoint, body.checkpoint_type)
    stated = body.output_path or str(checkpoint / f"merged_{body.checkpoint_type}")
    output = policy.check_path("output_path", stated)
    merge(shards, output)
    return {"success": True, "message": f"merged {KINDS[body.checkpoint_type]}", "merged_path": str(output)}


def version() -> dict[str, Any]:
    """Report the versions of this server, of Python and of the main packages."""
    installed = {name: found for name in _PACKAGES if (found := package_version(name))}
    return {
        "version": package_version("lmms_eval"),
        "python": platform.python_version(),
        "git": git("rev-parse", "--short=8", "HEAD"),
        "packages": installed,
    }


def results(request: Request, job_id: str) -> dict[str, Any]:
    """Return the scores of a job's run with their intervals and counts."""
    job = job_of(request, job_id)
    return {"job_id": job_id, "status": job.state, "models": scores_of(job)}


def samples(
    request: Request, job_id: str, task: str | None = None, offset: int = 0, limit: int = 100, where: str | None = None
) -> dict[str, Any]:
    """Read samples of a task, all or those that match an expression, also while the run continues."""
    runs = runs_of(job_of(request, job_id))
    return {"job_id": job_id, **page_of(runs, task, offset, limit, where)}


def archive(request: Request, job_id: str) -> StreamingResponse:
    """Send the folder of a job's run as a zip archive."""
    job = job_of(request, job_id)
    return StreamingResponse(
        zip_stream(files_of(job)),
        media_type="application/zip",
        headers={"Content-Disposition": f'attachment; filename="{job.job_id}.zip"'},
    )


def file(request: Request, job_id: str, path: str) -> FileResponse:
    """Send one file of a job's run, by its name in the archive."""
    job = job_of(request, job_id)
    found = files_of(job).get(path)
    if found is None:
        raise DataError(f"Job {job_id} has no file of this name; GET /jobs/{job_id}/files sends all of them")
    kind = mimetypes.guess_type(found.name)[0] or "application/octet-stream"
    # An HTML file would run its scripts with this server's origin.
    is_shown = kind.startswith("image/") and "svg" not in kind
    kind = kind if is_shown or kind == "application/json" else "text/plain" if found.suffix == ".jsonl" else kind
    headers = {**_NO_SNIFFING, "Content-Security-Policy": "sandbox; default-src 'none'"}
    return FileResponse(found, media_type=kind, headers=headers)


def log(request: Request, job_id: str, tail: int | None = None) -> Response:
    """Send the log of a job's run, or its last lines."""
    job = job_of(request, job_id)
    kept = JobLog(job.files.log)
    if tail is not None:
        if not 1 <= tail <= _MOST_LINES:
            raise RequestError(f"tail: lines from 1 to {_MOST_LINES}")
        return Response(readable("\n".join(kept.last_lines(tail)) + "\n", request), media_type="text/plain")
    return StreamingResponse(
        (readable(line, request) for line in kept.lines()), media_type="text/plain", headers=_NO_SNIFFING
    )


def events(request: Request, job_id: str) -> StreamingResponse:
    """Send events of a job until it has ended: state, progress, log. ``Last-Event-ID`` resumes after an event."""
    job_of(request, job_id)
    stated = request.headers.get("last-event-id") or request.query_params.get("last_event_id") or "0"
    if not (stated.isascii() and stated.isdigit() and len(stated) < 16):
        raise RequestError("Last-Event-ID: give the id of an event of this job")
    feeds: Feeds = request.app.state.feeds
    feeds.check_room()
    return StreamingResponse(
        feeds.stream(job_id, int(stated), lambda text: readable(text, request)),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store"},
    )


def metrics(request: Request) -> Response:
    """Return the server's metrics in the text format of Prometheus."""
    text: bytes = request.app.state.metrics.text()
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def server_router() -> APIRouter:
    """Return the routes that submit, watch and cancel jobs, read what they have written, and describe the server."""
    router = APIRouter()
    schema = {"application/json": {"schema": body_type().model_json_schema()}}
    router.add_api_route("/health", health, methods=["GET"])
    router.add_api_route(
        "/evaluate", evaluate, methods=["POST"], openapi_extra={"requestBody": {"content": schema, "required": True}}
    )
    for method, path, described in (
        ("GET", "/jobs/{job_id}", job),
        ("DELETE", "/jobs/{job_id}", cancel),
        ("GET", "/queue", queue),
        ("GET", "/tasks", tasks),
        ("GET", "/models", models),
        ("POST", "/merge", merge_checkpoint),
        ("GET", "/version", version),
    ):
        router.add_api_route(path, described, methods=[method])
    for path, endpoint in (
        ("/jobs/{job_id}/results", results),
        ("/jobs/{job_id}/samples", samples),
        ("/jobs/{job_id}/files", archive),
        ("/jobs/{job_id}/files/{path:path}", file),
        ("/jobs/{job_id}/log", log),
        ("/jobs/{job_id}/events", events),
        ("/metrics", metrics),
    ):
        router.add_api_route(path, endpoint, methods=["GET"], response_model=None)
    return router
