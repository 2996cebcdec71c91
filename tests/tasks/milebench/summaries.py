"""Scores of invented samples, as the tasks give them to the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lmms_eval.api.outcome import TaskNumbers
from lmms_eval.tasks.milebench.facts import datasets, find
from lmms_eval.tasks.milebench.summary.dataset import DatasetSummary, estimate, summarise


def value(score: float, n_images: int = 3, **changes: Any) -> dict[str, Any]:
    """What scoring gives of a sample."""
    return {
        "score": score, "fixed": score, "sequence": None, "metric": "Accuracy", "n_images": n_images, "step": "text",
        "fixed_step": "statement", "no_answer": 0, "needle_depth": None, "needle_length": None, **changes,
    }  # fmt: skip


def summary(name: str, scores: Sequence[float], n_images: int = 3, **changes: Any) -> DatasetSummary:
    return summarise([value(score, n_images, **changes) for score in scores], name)


def complete(right: int = 100, n_images: int = 3, variant: str = "") -> dict[str, TaskNumbers]:
    """All 29 tasks with every published sample, the first ``right`` of each data set answered rightly."""
    found = {}
    for facts in datasets().values():
        values = [value(float(number < right), n_images) for number in range(facts.samples)]
        found[f"milebench_{facts.task}"] = TaskNumbers(estimate(values, facts.name, variant).details)
    return found


def numbers(name: str, right: int, count: int | None = None, withheld: str = "", variant: str = "") -> TaskNumbers:
    """One task: ``right`` of ``count`` (all published) samples answered rightly."""
    total = find(name).samples if count is None else count
    values = [value(float(number < right)) for number in range(total)]
    return TaskNumbers(estimate(values, name, variant).details, withheld)
