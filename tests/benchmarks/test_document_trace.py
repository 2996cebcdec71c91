"""The script that counts what a run and a document need."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from benchmarks.document_trace import TASKS, Trace, trace
from lmms_eval.tasks.catalogue import Catalogue

PACKAGE = Path(__file__).parents[2] / "lmms_eval"


def test_one_document_of_a_benchmark() -> None:
    found = trace("megabench_demo", PACKAGE)
    named = {(file, name.rpartition(".")[2]) for file, name in found.one}
    assert ("tasks/megabench/utils.py", "doc_to_messages") in named  # asked
    assert ("tasks/megabench/utils.py", "process_results") in named  # scored, in a process of its own
    assert any(file.startswith("results/") for file, _ in named)  # reported
    assert not any(name.startswith("<") for _, name in named)
    shown = found.as_dict(with_names=True)
    assert shown["functions"] == len(shown["names"]) == sum(shown["by_package"].values()) > shown["files"] > 10
    document = shown["document"]
    assert document["names"]["tasks/megabench/utils.py: process_results"] == 1  # once for each document
    assert not any(name.startswith("cli/") for name in document["names"])  # the command is parsed once
    assert document["files"] < document["functions"] == len(document["names"]) <= document["calls"] < shown["calls"]


def test_a_document_is_what_further_documents_need() -> None:
    once, twice, seldom, sometimes = (
        ("cli/a.py", "main"),
        ("engine/b.py", "ask"),
        ("engine/b.py", "wait"),
        ("api/c.py", "f"),
    )
    few = Counter({once: 1, twice: 7, seldom: 2, sometimes: 3})
    many = Counter({once: 1, twice: 17, seldom: 6, sometimes: 8})
    found = Trace("t", Counter({once: 1, twice: 2}), few, many)
    assert found.of_document() == {twice: 2.0, sometimes: 1.0}  # not what was called less than once for each
    assert found.as_dict(with_names=True) == {
        "functions": 2, "files": 2, "by_package": {"cli": 1, "engine": 1}, "calls": 3,
        "names": ["cli/a.py: main", "engine/b.py: ask"],
        "document": {
            "functions": 2, "files": 2, "by_package": {"api": 1, "engine": 1}, "calls": 3.0,
            "names": {"engine/b.py: ask": 2.0, "api/c.py: f": 1.0},
        },
    }  # fmt: skip


def test_a_task_with_few_documents_has_no_part_for_each() -> None:
    function = ("engine/b.py", "ask")
    same = Counter({function: 3})
    assert Trace("t", Counter({function: 1}), same, same).as_dict()["document"] is None


def test_every_benchmark_has_its_task() -> None:
    assert set(Catalogue().match(TASKS)) == set(TASKS)
