"""V* Bench: multiple choice about small details of large pictures."""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.outcome import Estimate
from lmms_eval.errors import ItemError
from lmms_eval.tasks._task_utils.estimates import by, mean
from lmms_eval.tasks._task_utils.question import Doc, framed, option_lines

log = logging.getLogger(__name__)
CATEGORIES = ("direct_attributes", "relative_position")
_OPTION = re.compile(r"\([A-D]\)([^()]+)(?=\([A-D]\)|\Z)")
_FORMS = (
    r"(?:THE\s+)?(?:ANSWER|CHOICE|OPTION)(?:\s+IS)?[\s:]+([A-D])",
    r"\(([A-D])\)",
    r"([A-D])\s*(?:\.|\)|])",
    r"(?:^|\s)([A-D])(?:\s|$)",
)
_LETTER = tuple(map(re.compile, (r"^([A-D])\s*[\.)\]]*", *_FORMS)))
_STRICT_LETTER = tuple(map(re.compile, (r"^([A-D])(?![^\W\d_])", *_FORMS)))
"""Forms of an answer that names a letter, the first that is found counts; the stricter ones take no word's start."""


def only(docs: Any, category: str) -> Any:
    """Return the documents of a category."""
    return docs.filter(lambda found: found == category, input_columns="category")


only_direct_attributes = functools.partial(only, category="direct_attributes")
only_relative_position = functools.partial(only, category="relative_position")


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> str:
    """Return the question with its options, written ``(A) ...`` in the data, on lines of their own, in its frame.

    An option that holds parentheses is not found, and an instruction behind the last option belongs to it.
    """
    text = doc["text"]
    options = options_of(text)
    if options:
        text = f"{text.partition('(A)')[0].strip()}\n{option_lines(options)}"
    return framed(text, lmms_eval_specific_kwargs)


def options_of(text: str) -> list[str]:
    """Return the options that a text holds, without the white space around them; behind the last one some may stay."""
    found = []
    for option in _OPTION.finditer(text):
        is_last = option.end() == len(text)
        found.append((option[1].lstrip().removesuffix("\n") if is_last else option[1].strip()) or option[1][-1])
    return found


def letter(answer: str, forms: Sequence[re.Pattern[str]] = _LETTER) -> str | None:
    """Return the letter A to D that an answer names, or the only one that it holds at all; ``None`` without."""
    text = answer.strip().upper()
    for form in forms:
        found = form.search(text)
        if found:
            return found[1]
    held = re.findall(r"[A-D]", text)
    return held[0] if len(held) == 1 else None


def process_results(doc: Doc, results: Sequence[str]) -> dict[str, Any]:
    """Compare the answer's letter with the right one, for the document's category and for all.

    Raises:
        ItemError: the reference is no letter A to D.
    """
    if doc["label"] not in ("A", "B", "C", "D"):
        raise ItemError(f"vstar_bench: column 'label' holds {doc['label']!r}: it must be a letter A to D")

    if doc["category"] not in CATEGORIES:
        log.warning("vstar_bench: unknown category %r", doc["category"])

    def compared(found: str | None) -> dict[str, Any]:
        told = {"question_id": doc["question_id"], "category": doc["category"], "prediction": found, "extracted": found}
        return {**told, "score": float(found == doc["label"]), "ground_truth": doc["label"]}

    official, strict = compared(letter(results[0])), compared(letter(results[0], _STRICT_LETTER))
    scored: dict[str, Any] = {}
    for name in (f"vstar_{doc['category']}_acc", "vstar_overall_acc"):
        scored |= {name: official, f"{name}_fixed": strict}
    return scored


def aggregate(results: Sequence[Mapping[str, Any]]) -> Estimate:
    """Return the share of right answers in percent, also by category."""
    categories = by(results, "category", lambda row: row["score"], 100)
    return mean([row["score"] for row in results], 100, {"category": categories})
