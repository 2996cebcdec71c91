"""GSM8K: word problems of primary school; the answer is one number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def doc_to_gold(doc: Mapping[str, Any]) -> str:
    """Return the solution's number in the words that the strict filter of the zero-shot task looks for."""
    return f"The answer is {doc['answer'].rpartition('#### ')[2]}."
