from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from lmms_eval.api.outcome import TaskNumbers
from lmms_eval.tasks.megabench.facts import demo_labels
from lmms_eval.tasks.megabench.report import report
from lmms_eval.tasks.megabench.summary import macro_mean

NAMES = sorted(demo_labels())[:3]
RULE, OTHER, JUDGED = NAMES


def details(queries: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    values = [
        {"task_name": name, "query": score, "score": score, "eval_type": "llm" if name == JUDGED else "rule"}
        for name, scores in queries.items()
        for score in scores
    ]
    return dict(macro_mean(values).details)  # type: ignore[union-attr]


def part(queries: Mapping[str, Sequence[float]], missing: Mapping[str, int], withheld: str = "") -> Any:
    made = report({"megabench_demo": TaskNumbers(details(queries), withheld, missing=missing)}, None)
    assert made is not None
    return made.text, made.parts["megabench_breakdown"]["demo"]


QUERIES = {RULE: [1.0, 0.0, 0.5], OTHER: [1.0], JUDGED: [0.25, 0.75]}


def test_bounds_are_the_least_and_the_greatest_score_of_all_ways_to_score_what_is_missing() -> None:
    missing = {RULE: 2, JUDGED: 1}
    found = {name: [] for name in ("core", "open", "overall")}  # type: dict[str, list[float]]
    for first, second, third in itertools.product((0.0, 0.3, 1.0), repeat=3):
        whole = {**QUERIES, RULE: [*QUERIES[RULE], first, second], JUDGED: [*QUERIES[JUDGED], third]}
        summary = part(whole, {})[1]["model_summary"]
        found["overall"].append(summary["overall_score"])
        for side in ("core", "open"):
            found[side].append(summary[side]["macro_mean_score"])
    text, content = part(QUERIES, missing)
    bounds = content["missing"]
    for name, scores in found.items():
        assert (bounds[name]["low"], bounds[name]["high"]) == pytest.approx((min(scores), max(scores)))
    assert {name: one["n"] for name, one in bounds.items()} == {"core": 2, "open": 1, "overall": 3}
    low, high = bounds["overall"]["low"], bounds["overall"]["high"]
    assert f"overall: 3 documents without a score: {low:.4f} to {high:.4f} whatever they would score" in text


def test_a_side_that_lacks_nothing_has_no_bounds() -> None:
    assert set(part(QUERIES, {RULE: 1})[1]["missing"]) == {"core", "overall"}


def test_without_missing_queries_or_with_a_withheld_score_there_is_nothing_to_bound() -> None:
    assert "missing" not in part(QUERIES, {})[1]
    assert "missing" not in part(QUERIES, {RULE: 1}, "9 of 9 failed")[1]


def test_a_task_without_any_score_leaves_the_mean_so_that_there_are_no_bounds() -> None:
    text, content = part({RULE: [1.0], OTHER: [1.0]}, {JUDGED: 2})
    reason = f"no query of {JUDGED} has a score"
    assert content["missing"] == {"overall": {"n": 2, "reason": reason}}
    assert f"overall: 2 documents without a score, no bounds: {reason}" in text
    assert part(QUERIES, {"": 1})[1]["missing"]["overall"]["reason"] == "their tasks are not known"
