"""The family's endpoints: submit, watch and cancel jobs; what the server offers; merge a checkpoint."""

from __future__ import annotations

import platform
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from lmms_eval.errors import RequestError
from lmms_eval.server.answers import NoJobError, WrongStateError, is_local, told
from lmms_eval.server.job import Job, now
from lmms_eval.server.merging import KINDS, MergeRequest, merge, shards_of
from lmms_eval.server.outcome import named_files
from lmms_eval.server.requests import body_type
from lmms_eval.server.service import Service
from lmms_eval.utils.installed import git, package_version
from lmms_eval.utils.redaction import redact

_LONGEST_KEY = 200
_PACKAGES = ("torch", "accelerate", "transformers", "vllm")


def service_of(request: Request) -> Service:
    """Return the service that the application stands above."""
    service: Service = request.app.state.service
    return service


def job_of(request: Request, job_id: str) -> Job:
    """Find a job. Raises ``NoJobError``."""
    job = service_of(request).job(job_id)
    if job is None:
        raise NoJobError(job_id)
    return job


def health(request: Request) -> dict[str, Any]:
    """Tell that the server answers, and how many jobs wait."""
    counts = service_of(request).store.counts()
    return {"status": "healthy", "timestamp": now(), "queue_size": counts.get("queued", 0)}


async def evaluate(request: Request) -> JSONResponse:
    """Submit a job. A header ``Idempotency-Key`` makes a repeated submission the same job."""
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
    """Tell how a job is: its state, request, result or error. On other machines files have their names in ``files``."""
    found = job_of(request, job_id)
    described = service_of(request).described(found)
    described["request"] = redact(described["request"])
    if described["error"] is not None:
        described["error"] = told(described["error"], request)
    if not is_local(request):
        described["result"] = named_files(found)
    return described


def cancel(request: Request, job_id: str) -> JSONResponse:
    """End a job: a queued one at once, a running one as soon as its processes are gone."""
    before = job_of(request, job_id)
    if before.has_ended:
        raise WrongStateError(f"Job {job_id} has ended: it is {before.state}")
    after = service_of(request).cancel(job_id)
    if after is None:
        raise NoJobError(job_id)
    if after.state == "cancelled":
        return JSONResponse({"message": f"Job {job_id} cancelled"})
    if after.has_ended:
        raise WrongStateError(f"Job {job_id} has ended: it is {after.state}")
    return JSONResponse({"message": f"Job {job_id} is being cancelled"}, 202)


def queue(request: Request) -> dict[str, Any]:
    """Tell which jobs run and wait, and how many have ended."""
    return dict(service_of(request).queue())


def tasks(request: Request) -> dict[str, Any]:
    """List the names of tasks, groups and tags."""
    return {"tasks": service_of(request).tasks}


def models(request: Request) -> dict[str, Any]:
    """List the names of models."""
    return {"models": service_of(request).models}


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
    """Tell the versions of this server and of what it runs on."""
    installed = {name: found for name in _PACKAGES if (found := package_version(name))}
    return {
        "version": package_version("lmms_eval"),
        "python": platform.python_version(),
        "git": git("rev-parse", "--short=8", "HEAD"),
        "packages": installed,
    }


def family_router() -> APIRouter:
    """Make the routes."""
    router = APIRouter()
    schema = {"application/json": {"schema": body_type().model_json_schema()}}
    router.add_api_route("/health", health, methods=["GET"])
    router.add_api_route(
        "/evaluate", evaluate, methods=["POST"], openapi_extra={"requestBody": {"content": schema, "required": True}}
    )
    router.add_api_route("/jobs/{job_id}", job, methods=["GET"])
    router.add_api_route("/jobs/{job_id}", cancel, methods=["DELETE"])
    router.add_api_route("/queue", queue, methods=["GET"])
    router.add_api_route("/tasks", tasks, methods=["GET"])
    router.add_api_route("/models", models, methods=["GET"])
    router.add_api_route("/merge", merge_checkpoint, methods=["POST"])
    router.add_api_route("/version", version, methods=["GET"])
    return router
