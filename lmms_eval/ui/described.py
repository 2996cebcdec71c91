"""Jobs as the page shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lmms_eval.config.convert import argument_text
from lmms_eval.errors import DataError
from lmms_eval.results.following.snapshot import Snapshot
from lmms_eval.results.run_reader.document import part_of
from lmms_eval.server.folder import JobFolder
from lmms_eval.server.job import Job
from lmms_eval.server.job_log import JobLog
from lmms_eval.server.outcome import results_files
from lmms_eval.storage.json_files import read_json
from lmms_eval.ui.preview import Preview
from lmms_eval.utils.redaction import redact, redact_text

LOG_BYTES = 256 << 10
"""Bytes of a log in one answer."""
_FILLED = {"log_samples": True, "predict_only": False, "num_gpus": 1}
"""Values that the server fills in where a request says nothing."""


def entry(job: Job, position: int) -> dict[str, Any]:
    """Describe a job in a list."""
    tasks = job.request.get("tasks")
    return {
        "job_id": job.job_id,
        "state": job.state,
        "created_at": job.created_at,
        "started_at": job.started_at,
        "completed_at": job.completed_at,
        "model": str(job.request.get("model")),
        "model_args": redact_text(argument_text(job.request.get("model_args"))),
        "tasks": [str(name) for name in tasks] if isinstance(tasks, list) else [],
        "position": position,
        "is_stopping": job.is_cancelled and not job.has_ended,
    }


def details(job: Job, position: int, shown: Preview) -> dict[str, Any]:
    """Describe a job with its request, its scores and what there is to look at."""
    folder = JobFolder(Path(job.folder))
    files = results_files(job, folder)
    return {
        **entry(job, position),
        "error": None if job.error is None else redact_text(job.error),
        "request": redact(as_draft(job.request)),
        "command": shown.command,
        "yaml": shown.yaml,
        "scores": scores(files[-1]) if files else [],
        "can_report": job.has_ended and bool(files),
    }


def progress(snapshot: Snapshot) -> dict[str, Any]:
    """Describe a moment of a job's run."""
    return {
        "is_read": snapshot.is_read,
        "requested": snapshot.requested,
        "done": snapshot.done,
        "failed": snapshot.failed,
        "rate": snapshot.rate or snapshot.rate_overall,
        "seconds_left": snapshot.seconds_left,
        "tokens": snapshot.tokens_in + snapshot.tokens_out,
        "reasons": [{"text": text, "count": count} for text, count in snapshot.reasons],
        "tasks": [asdict(task) for task in snapshot.tasks],
    }


def as_draft(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request as it was put together, without what the server has filled in."""
    return {
        name: value for name, value in request.items() if value not in (None, "", {}) and _FILLED.get(name) != value
    }


def scores(file: Path) -> list[dict[str, Any]]:
    """List the numbers of a results file; none where it cannot be read."""
    from lmms_eval.viewer.numbers import stated_rows

    try:
        document = read_json(file)
    except (OSError, DataError):
        return []
    names = part_of(document, "results") if isinstance(document, dict) else {}
    rows = [row for name in names for row in stated_rows(document, name)]
    return [
        {
            "task": row["task"],
            "metric": row["metric"] if row["filter"] in ("none", "") else f"{row['metric']}, {row['filter']}",
            "value": row["value"],
            "low": row["low"],
            "high": row["high"],
            "documents": row["n"],
            "withheld": row.get("withheld", ""),
        }
        for row in rows
    ]


def log_piece(job: Job, place: int) -> dict[str, Any]:
    """Read on in a job's log; while it grows, a line that has not ended is left for the next time."""
    piece = JobLog(JobFolder(Path(job.folder)).log).read(place, LOG_BYTES)
    gap = f"[{piece.left_out} bytes of the log are not kept]\n" if piece.left_out else ""
    end = len(piece.data) if job.has_ended else _whole(piece.data)
    text = redact_text(piece.data[:end].decode("utf-8", "replace"))
    return {"text": gap + text, "next": piece.next - (len(piece.data) - end)}


def _whole(data: bytes) -> int:
    """The length of the data up to its last line end, since secrets are masked in whole lines; all of a long line."""
    end = data.rfind(b"\n") + 1
    return end if end or len(data) < LOG_BYTES else len(data)
