"""Published facts: categories with their sizes (§1). ``published.tsv`` holds results in percent, mean / 6 × 100."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

CATEGORIES: Mapping[str, str] = MappingProxyType(
    {"SA": "Situational analysis", "PBL": "Project-based learning", "MSR": "Multi-step reasoning"}
)
"""Names by tag, in the order of the search for tags in ids."""
QUESTIONS: Mapping[str, int] = MappingProxyType({"SA": 5005, "PBL": 11482, "MSR": 3616})
"""Questions of the whole data set, by tag."""
