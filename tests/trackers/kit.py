"""Runs that are tracked, without network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.workload import picture_task
from lmms_eval.evaluation.run import run
from lmms_eval.evaluation.writing import RunReport
from tests.evaluation.kit import NAME, config
from tests.servers.stub import StubServer

PICTURES = "bench_image"


def numbers_of(report: RunReport, task: str = NAME) -> dict[str, float]:
    """Numbers of a task's results, by the names that trackers have."""
    entry = report.results["results"][task]
    found = {key.removesuffix(",none"): value for key, value in entry.items() if isinstance(value, float | int)}
    assert found
    return {f"{task}/{name}": float(value) for name, value in found.items()}


def eval_row(report: RunReport, task: str = NAME) -> list[Any]:
    """The row of the table of results."""
    entry = report.results["results"][task]
    version = str(report.results["versions"][task])
    return [task, version, "none", "0", "exact_match", entry["exact_match,none"], entry["exact_match_stderr,none"]]


def with_pictures(tmp: Path, documents: int = 3, **over: Any) -> RunReport:
    """A run whose documents have a picture each, which are sent to a server on loopback."""
    picture_task(tmp / "tasks", documents, documents)
    with StubServer() as server:
        arguments = f"model=stub,base_url={server.url},api_key=none,max_retries=0"
        return run(config(tmp, model="openai", model_args=arguments, tasks=PICTURES, **over))


def place_of(report: RunReport, name: str) -> Path:
    """The folder that a tracker has named, after it has ended well."""
    told = report.results["trackers"][name]
    assert (told["state"], told["error"]) == ("finished", "")
    return Path(told["folder"])
