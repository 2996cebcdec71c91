"""The 505 tasks as published: their place in the data set, labels and scoring (``tasks.tsv``)."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from lmms_eval.utils.files import Row, read_table

Subset = Literal["core", "open"]


class Labels(Struct, frozen=True):
    """Keywords that the breakdown groups tasks by."""

    skills: tuple[str, ...]
    input_format: str
    output_format: str
    visual_inputs: str
    application: str


class DatasetTask(Struct, frozen=True):
    """A task of the data set."""

    name: str
    subset: Subset
    first_id: int
    """``id`` of its first query; the ids of the others are consecutive."""
    queries: int
    demonstrations: int
    single_image_first_id: int | None
    """``id`` in the single-image configuration; ``None`` if the task is not in it."""
    labels: Labels
    parser: str
    aggregation: str
    metrics: Mapping[str, str]
    """Metric by field, as in ``metric_info``."""
    weights: Mapping[str, float]
    """Weight by field, auxiliary scores included."""


_FOLDER = Path(__file__).parent


def _labels(row: Row) -> Labels:
    single = (row[name] for name in ("input_format", "output_format", "visual_inputs", "application"))
    return Labels(tuple(row["skills"].split(";")), *single)


@functools.cache
def tasks() -> Mapping[str, DatasetTask]:
    """Return all 505 tasks by name, in the order of the data set (core, then open)."""
    found: dict[str, DatasetTask] = {}
    for row in read_table(_FOLDER / "tasks.tsv"):
        metrics = json.loads(row["metrics"])
        found[row["task"]] = DatasetTask(
            name=row["task"],
            subset="open" if row["subset"] == "open" else "core",
            first_id=int(row["first_id"]),
            queries=int(row["queries"]),
            demonstrations=int(row["demonstrations"]),
            single_image_first_id=int(row["single_image_first_id"]) if row["single_image_first_id"] else None,
            labels=_labels(row),
            parser=row["parser"],
            aggregation=row["aggregation"],
            metrics=MappingProxyType(metrics),
            weights=MappingProxyType(json.loads(row["weights"]) if row["weights"] else dict.fromkeys(metrics, 1)),
        )
    return MappingProxyType(found)


@functools.cache
def labels() -> Mapping[str, Labels]:
    """Return the labels of every task by its name."""
    return MappingProxyType({name: task.labels for name, task in tasks().items()})


@functools.cache
def demo_labels() -> Mapping[str, Labels]:
    """Return the labels of the demonstration's tasks, in the published wording (``demo.tsv``)."""
    return MappingProxyType({row["task"]: _labels(row) for row in read_table(_FOLDER / "demo.tsv")})
