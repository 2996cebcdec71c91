"""Folders of runs for tests, as the harness writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson

from lmms_eval.storage.lines import sealed
from tests.engine.journaled import store_of

STAMP = "20240101_000000"
KEY = "0123456789abcdef"


def document(**parts: Any) -> dict[str, Any]:
    """A results document of the task ``quiz``."""
    return {
        "results": {"quiz": {"alias": "quiz", "acc,none": 0.5}},
        "configs": {"quiz": {"score_key": "score", "metric_list": [{"metric": "acc", "aggregation": "mean"}]}},
        "higher_is_better": {"quiz": {"acc": True, "graded": True}},
        "outcomes": {"quiz": {"requested": 4, "scored": 3, "failed": 1, "n": {"acc,none": 3}}},
        "n-shot": {"quiz": 0},
        "model_name": "org/model",
        "date": "2024-01-01T00:00:00",
        "state": "complete",
        "run_key": KEY,
        "config": {"resolved_cli_args": {"model": "openai", "tasks": "quiz", "limit": 4}},
        **parts,
    }


def sample(doc_id: int, **more: Any) -> dict[str, Any]:
    """A line of a samples file."""
    return {
        "doc_id": doc_id,
        "target": "right",
        "filtered_resps": f"said {doc_id}",
        "resps": f"<think></think>said {doc_id}",
        "token_counts": [{"input_tokens": 10 + doc_id, "output_tokens": 2, "reasoning_tokens": None}],
        "doc_hash": f"{doc_id:064x}",
        "acc": float(doc_id % 2),
        "graded": {"score": doc_id / 4, "kind": "xy"[doc_id % 2]},
        "input": f"question {doc_id}",
        "sent_media": [{"type": "image", "path": f"/media/{doc_id}.png"}],
        "filter": "none",
        "status": "scored",
        "finish_reason": "length" if doc_id == 2 else "stop",
        "elapsed": 0.5,
        "doc": {"topic": "ab"[doc_id // 2 % 2], "year": 2000 + doc_id, "tags": ["t", str(doc_id)]},
        "request_id": f"quiz/{doc_id}",
        **more,
    }


FAILED = {"doc_id": 3, "status": "failed", "error": "timeout", "input": "question 3", "request_id": "quiz/3"}


def write_run(folder: Path, rows: list[dict[str, Any]] | None = None, results: dict[str, Any] | None = None) -> Path:
    """Write a results file and samples next to it; return the results file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{STAMP}_results.json"
    path.write_text(json.dumps(document() if results is None else results))
    rows = [*map(sample, range(3)), FAILED] if rows is None else rows
    (folder / f"{STAMP}_samples_quiz.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_record(folder: Path, *records: dict[str, Any], **state: Any) -> Path:
    """Write the record of a run: journals and ``run.json``."""
    store_of(folder, *records).close()
    arguments = {"model": "openai", "model_args": "model=org/model", "tasks": "quiz", "limit": 4}
    content = {"key": KEY, "stamp": STAMP, "state": "interrupted", "date": "today", "arguments": arguments, **state}
    (folder / "run.json").write_bytes(sealed(orjson.dumps(content)))
    return folder
