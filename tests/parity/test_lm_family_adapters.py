"""The adapters of lm-eval's vectors notice what differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cases import for_each
from tests.parity import packs
from tests.parity.adapters import lm_family_groups, lm_family_tasks
from tests.parity.adapters.lm_family_functions import RULE, functions
from tests.parity.vectors import Vector


def line(function: str, *args: Any, **stated: Any) -> Vector:
    return Vector("lm_family/fn.jsonl", 0, {"function": function, "args": list(args), "kwargs": {}, **stated})


@for_each(
    ("vector", "state"),
    [
        (line("aggregation:mean", [1, 2], expected=1.5), "passed"),
        (line("aggregation:mean", [1, 2], expected=1.5001), "failed"),
        (line("aggregation:mean", [], raises="ZeroDivisionError"), "passed"),
        (line("aggregation:mean", [1], raises="ZeroDivisionError"), "failed"),
        (line("aggregation:mean", ["a"], expected=1), "failed"),
        (line("hash_string", "a", expected="b"), "failed"),
        (line("no_such_function", "a", expected="b"), "failed"),
        (line("has_stderr", "weighted_perplexity", 10, expected=True), "failed"),
        (line("sampler", "default", [{"a": 1}], 1, None, [[1, None]], expected=[[{"a": 2}]]), "failed"),
        (line("sampler", "default", [{"a": 1}], 1, None, [[1, {"a": 1}]], raises="ValueError"), "passed"),
    ],
)
def test_calls(vector: Vector, state: str) -> None:
    assert functions(vector).state == state


def test_a_filter_without_its_group_deviates() -> None:
    arguments = {"regex_pattern": "(a)", "group_select": 3, "fallback": "none"}
    verdict = functions(line("filter:regex", arguments, [["a", "b"]], raises="IndexError"))
    assert (verdict.state, verdict.detail) == ("deviates", RULE)


def test_without_the_pack_its_vectors_are_pending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "FOLDER", tmp_path)
    for adapter in (lm_family_tasks.tasks, lm_family_groups.groups):
        verdict = adapter(line("x"))
        assert verdict.state == "pending"
        assert verdict.detail == (
            f"the pack of lm-eval is not in {tmp_path}: with a network, make test gets it from the package index"
        )
