"""MME: yes-or-no questions in pairs about one picture; two scores, each a sum over categories of up to 200."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lmms_eval.api.outcome import Estimate
from lmms_eval.errors import ItemError
from lmms_eval.tasks._task_utils.estimates import by, over_parts
from lmms_eval.utils.answer_reading import LETTER_ALONE, NOTHING, WORD_ALONE, note_reading

log = logging.getLogger(__name__)
PERCEPTION = (
    "existence", "count", "position", "color", "posters", "celebrity", "scene", "landmark", "artwork", "OCR",
)  # fmt: skip
COGNITION = ("commonsense_reasoning", "numerical_calculation", "text_translation", "code_reasoning")
_PAIR = 2


def label(answer: str) -> str:
    """Read an answer as ``yes``, ``no`` or ``other``: by its first four characters, or by one letter."""
    text = answer.lower().strip().replace(".", "")
    if len(text) == 1:
        found = {"y": "yes", "n": "no"}.get(text, "other")
    else:
        found = next((word for word in ("yes", "no") if word in text[:4]), "other")
    if found == "other":
        note_reading(NOTHING)
    else:
        rule = WORD_ALONE if text == found else LETTER_ALONE if len(text) == 1 else "first four characters"
        note_reading(rule, found)
    return found


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    """Score the answer 1 or 0 under the metric of the document's category, and under the total.

    Raises:
        ItemError: the reference answer is neither yes nor no.
    """
    gold = doc["answer"].lower().strip().replace(".", "")
    if gold not in ("yes", "no"):
        raise ItemError(f"mme: column 'answer' holds {doc['answer']!r}: it must be Yes or No")
    category = doc["category"]
    if category not in (*PERCEPTION, *COGNITION):
        log.warning("mme: unknown category %r counts as cognition", category)
    scored = {"question_id": doc["question_id"], "category": category, "score": float(label(results[0]) == gold)}
    name = "mme_perception_score" if category in PERCEPTION else "mme_cognition_score"
    return {name: scored, "mme_total": scored}


def aggregate(results: Sequence[Mapping[str, Any]]) -> Estimate:
    """Sum, over categories, of the mean over pictures of 100 × (share right + 1 if both are right)."""
    pairs: dict[tuple[str, str], list[float]] = {}
    for result in results:
        pairs.setdefault((result["category"], result["question_id"]), []).append(result["score"])
    whole = [
        {"category": category, "score": 100 * (sum(scores) / _PAIR + (sum(scores) == _PAIR))}
        for (category, _), scores in pairs.items()
        if len(scores) == _PAIR
    ]
    left_out = len(pairs) - len(whole)
    notes = [f"incomplete_questions: {left_out} of {len(pairs)} pictures have other than two answers, left out"]
    return over_parts(by(whole, "category", lambda row: row["score"]), "category", True, notes if left_out else ())


def aggregate_total(results: Sequence[Mapping[str, Any]]) -> Estimate:
    """Do as ``aggregate`` over all categories, whose scores accompany perception and cognition."""
    return replace(aggregate(results), sub_scores={}, notes=())
