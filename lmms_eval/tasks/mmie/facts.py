"""Published facts: categories with their sizes, and results in percent, which is mean / 6 × 100 (§1, §13)."""

from __future__ import annotations

import csv
import functools
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

CATEGORIES: Mapping[str, str] = MappingProxyType(
    {"SA": "Situational analysis", "PBL": "Project-based learning", "MSR": "Multi-step reasoning"}
)
"""Names by tag, in the order of the search for tags in ids."""
QUESTIONS: Mapping[str, int] = MappingProxyType({"SA": 5005, "PBL": 11482, "MSR": 3616})
"""Questions of the whole data set, by tag."""
_FILE = Path(__file__).with_name("published.tsv")


class PublishedRow(Struct, frozen=True):
    """A row of the leaderboard."""

    text_model: str
    image_model: str
    """Model that draws for a text-only model, or empty for one that draws itself."""
    sa: float
    pbl: float
    msr: float
    avg: float

    @property
    def by_category(self) -> dict[str, float]:
        return {"SA": self.sa, "PBL": self.pbl, "MSR": self.msr}


@functools.lru_cache(maxsize=1)
def published() -> tuple[PublishedRow, ...]:
    """Read all rows, in the order of the paper's table."""
    with _FILE.open(encoding="utf-8", newline="") as file:
        return tuple(
            PublishedRow(
                row["text_model"], row["image_model"], *(float(row[name]) for name in ("SA", "PBL", "MSR", "AVG"))
            )
            for row in csv.DictReader(file, delimiter="\t")
        )
