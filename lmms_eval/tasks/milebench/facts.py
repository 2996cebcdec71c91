"""Facts of the 29 data sets, from ``datasets.tsv``, the table that also defines their tasks."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal, cast

from msgspec import Struct

from lmms_eval.errors import DataError
from lmms_eval.utils.files import read_table

Metric = Literal["accuracy", "rouge_l"]
TABLE = Path(__file__).parent / "datasets.tsv"


class Dataset(Struct, frozen=True):
    """One data set."""

    name: str
    """Stem of its folder and files; scoring chooses its rule by this name."""
    task: str
    """Its task without the prefix ``milebench_``."""
    group: str
    """``t1`` ... ``t4``, ``s1`` ... ``s5``, ``n1``, ``n2``, ``i1``."""
    label: str
    """The group as the paper writes it: ``T-1``."""
    title: str
    """Title of the group."""
    category: str
    """``temporal``, ``semantic``, ``needle`` or ``retrieval``."""
    set: str
    """``realistic`` or ``diagnostic``."""
    samples: int
    metric: Metric
    """Metric in the paper; the file's ``question_type`` decides."""
    part: int
    """Number of the archive on the hub."""
    part_gb: float
    """Size of that archive."""
    has_adversarial: bool


@functools.cache
def datasets() -> Mapping[str, Dataset]:
    """The data sets by name, in the order of the paper's groups."""
    return MappingProxyType(
        {
            row["name"]: Dataset(
                row["name"], row["task"], row["group"], row["label"], row["title"], row["category"], row["set"],
                int(row["samples"]), cast(Metric, row["metric"]), int(row["part"]), float(row["size"]),
                row["adversarial"] == "yes",
            )
            for row in read_table(TABLE)
        }
    )  # fmt: skip


def find(name: str) -> Dataset:
    """Find a data set by its name, case-sensitively. Raises ``DataError`` if the name is unknown."""
    if name not in datasets():
        raise DataError(f"MileBench has no data set {name!r}; there is: {', '.join(datasets())}")
    return datasets()[name]
