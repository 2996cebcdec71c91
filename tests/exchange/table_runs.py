"""Runs of the tasks ``quiz`` and ``errors`` (lower is better) for tests of tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.results.runs import document, sample, write_run

INTERVAL = {"low": 0.1, "high": 0.9, "method": "wilson", "estimand": "generalised accuracy"}


def table_document(model: str, scores: Sequence[float | None], **parts: Any) -> dict[str, Any]:
    """A results document of ``quiz``, whose number is the mean of the scores."""
    known = [score for score in scores if score is not None]
    mean = sum(known) / len(known) if known else None
    failed = len(scores) - len(known)
    found = document(
        results={"quiz": {"alias": "quiz", "acc,none": mean, "acc_stderr,none": 0.0625}},
        configs={"quiz": {"metric_list": [{"metric": "acc", "aggregation": "mean", "range": [0, 1]}]}},
        outcomes={"quiz": {"requested": len(scores), "scored": len(known), "failed": failed,
                           "n": {"acc,none": len(known)}}},
        intervals={"quiz": {"acc,none": INTERVAL}},
        model_name=model,
        config={"model": "openai", "model_args": f"model={model}"},
    )  # fmt: skip
    found["n-samples"] = {"quiz": {"original": len(scores), "effective": len(scores)}}
    return {**found, **parts}


def write_table_run(folder: Path, model: str, scores: Sequence[float | None], **parts: Any) -> Path:
    """Write a run with its samples; return the results file."""
    rows = [
        sample(number, acc=score) if score is not None else {"doc_id": number, "status": "failed", "error": "timeout"}
        for number, score in enumerate(scores)
    ]
    return write_run(folder, rows, table_document(model, scores, **parts))


def right(count: int, of: int = 40) -> list[float]:
    """Scores of the documents: the first ones are right."""
    return [float(number < count) for number in range(of)]
