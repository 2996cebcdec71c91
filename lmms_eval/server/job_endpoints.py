"""Endpoints for the contents of a job: scores, samples, files, log, events."""

from __future__ import annotations

import mimetypes
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, Response, StreamingResponse

from lmms_eval.errors import DataError, RequestError
from lmms_eval.server.answers import told
from lmms_eval.server.contents import Runs, page_of, scores_of
from lmms_eval.server.endpoints import job_of
from lmms_eval.server.events import Feeds
from lmms_eval.server.files import files_of, zip_stream
from lmms_eval.server.folder import JobFolder
from lmms_eval.server.job import Job
from lmms_eval.server.job_log import JobLog

_NO_SNIFFING = {"X-Content-Type-Options": "nosniff"}
_MOST_LINES = 100_000


def _folder(job: Job) -> JobFolder:
    return JobFolder(Path(job.folder))


def results(request: Request, job_id: str) -> dict[str, Any]:
    """Tell the scores of a job's run as numbers, with their intervals and counts."""
    job = job_of(request, job_id)
    return {"job_id": job_id, "status": job.state, "models": scores_of(job, _folder(job))}


def samples(
    request: Request, job_id: str, task: str | None = None, offset: int = 0, limit: int = 100, where: str | None = None
) -> dict[str, Any]:
    """Read samples of a task, all or those that fit an expression, also while the run goes on."""
    job = job_of(request, job_id)
    runs: Runs = request.app.state.runs
    return {"job_id": job_id, **page_of(runs.of(job, _folder(job)), task, offset, limit, where)}


def archive(request: Request, job_id: str) -> StreamingResponse:
    """Send the folder of a job's run as a zip archive."""
    job = job_of(request, job_id)
    return StreamingResponse(
        zip_stream(files_of(job, _folder(job))),
        media_type="application/zip",
        headers={"Content-Disposition": f'attachment; filename="{job.job_id}.zip"'},
    )


def file(request: Request, job_id: str, path: str) -> FileResponse:
    """Send one file of a job's run, by its name in the archive."""
    job = job_of(request, job_id)
    found = files_of(job, _folder(job)).get(path)
    if found is None:
        raise DataError(f"Job {job_id} has no file of this name; GET /jobs/{job_id}/files sends all of them")
    kind = mimetypes.guess_type(found.name)[0] or "application/octet-stream"
    # A page among them would run its scripts as this server's.
    is_shown = kind.startswith("image/") and "svg" not in kind
    kind = kind if is_shown or kind == "application/json" else "text/plain" if found.suffix == ".jsonl" else kind
    headers = {**_NO_SNIFFING, "Content-Security-Policy": "sandbox; default-src 'none'"}
    return FileResponse(found, media_type=kind, headers=headers)


def log(request: Request, job_id: str, tail: int | None = None) -> Response:
    """Send the log of a job's run, or its last lines."""
    job = job_of(request, job_id)
    kept = JobLog(_folder(job).log)
    if tail is not None:
        if not 1 <= tail <= _MOST_LINES:
            raise RequestError(f"tail: lines from 1 to {_MOST_LINES}")
        return Response(told("\n".join(kept.last_lines(tail)) + "\n", request), media_type="text/plain")
    return StreamingResponse(
        (told(line, request) for line in kept.lines()), media_type="text/plain", headers=_NO_SNIFFING
    )


def events(request: Request, job_id: str) -> StreamingResponse:
    """Send events of a job until it has ended: state, progress, log. ``Last-Event-ID`` goes on behind an event."""
    job_of(request, job_id)
    stated = request.headers.get("last-event-id") or request.query_params.get("last_event_id") or "0"
    if not (stated.isascii() and stated.isdigit() and len(stated) < 16):
        raise RequestError("Last-Event-ID: give the id of an event of this job")
    feeds: Feeds = request.app.state.feeds
    feeds.check_room()
    return StreamingResponse(
        feeds.stream(job_id, int(stated), lambda text: told(text, request)),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store"},
    )


def metrics(request: Request) -> Response:
    """Tell the server's figures in the text form of Prometheus."""
    text: bytes = request.app.state.metrics.text()
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def contents_router() -> APIRouter:
    """Make the routes."""
    router = APIRouter()
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
