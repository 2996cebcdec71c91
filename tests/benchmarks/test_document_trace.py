"""The script that writes down what one document needs."""

from __future__ import annotations

from pathlib import Path

from benchmarks.document_trace import TASKS, trace
from lmms_eval.tasks.catalogue import Catalogue

PACKAGE = Path(__file__).parents[2] / "lmms_eval"


def test_one_document_of_a_benchmark() -> None:
    found = trace("milebench_demo_actionsequence", PACKAGE)
    named = {(file, name.rpartition(".")[2]) for file, name in found.functions}
    assert ("tasks/milebench/utils.py", "doc_to_messages") in named  # asked
    assert ("tasks/milebench/utils.py", "process_results") in named  # scored, in a process of its own
    assert any(file.startswith("results/") for file, _ in named)  # reported
    assert not any(name.startswith("<") for _, name in named)
    shown = found.as_dict(with_names=True)
    assert shown["functions"] == len(shown["names"]) == sum(shown["by_package"].values()) > shown["files"] > 10


def test_every_benchmark_has_its_task() -> None:
    assert set(Catalogue().match(TASKS)) == set(TASKS)
