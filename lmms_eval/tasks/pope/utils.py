"""POPE: is there such an object in the picture? Yes-or-no answers, counted as a binary classification."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.outcome import Estimate
from lmms_eval.errors import ItemError
from lmms_eval.tasks._task_utils.estimates import mean, ratio
from lmms_eval.utils.answer_reading import NOTHING, WORD_ALONE, note_reading

_METRICS = ("pope_accuracy", "pope_precision", "pope_recall", "pope_f1_score")
_WORDS = re.compile(r"[a-z]+")
Results = Sequence[Mapping[str, Any]]


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    """Return the answer and the reference; under ``*_fixed`` as the benchmark's own rule reads it.

    Raises:
        ItemError: the reference answer is neither yes nor no.
    """
    gold = doc["answer"].lower().strip()
    if gold not in ("yes", "no"):
        raise ItemError(f"pope: column 'answer' holds {doc['answer']!r}: it must be yes or no")
    answer = results[0].lower().strip()
    if answer in ("yes", "no"):
        note_reading(WORD_ALONE, answer)
    else:
        note_reading(NOTHING)

    def compared(prediction: str) -> dict[str, Any]:
        score = float(prediction == gold)
        return {"question_id": doc["question_id"], "score": score, "prediction": prediction, "ground_truth": gold}

    exact, read = compared(answer), compared(yes_or_no(answer))
    fixed = {f"{name}_fixed": read for name in _METRICS}
    return {**dict.fromkeys(_METRICS, exact), "pope_yes_ratio": exact, **fixed}


def yes_or_no(answer: str) -> str:
    """Read an answer: ``no`` if its first sentence has the word no or not, else ``yes``, whatever it says."""
    if answer in ("yes", "no"):
        return answer
    words = _WORDS.findall(answer.lower().partition(".")[0])
    return "no" if "no" in words or "not" in words else "yes"


def aggregate_accuracy(results: Results) -> Estimate:
    """Return the share of answers that are the reference."""
    return mean([result["score"] for result in results])


def aggregate_precision(results: Results) -> Estimate:
    """Return the share of right ones among the answers yes; 0 without any."""
    return _or_zero(mean([float(one["ground_truth"] == "yes") for one in results if one["prediction"] == "yes"]))


def aggregate_recall(results: Results) -> Estimate:
    """Return the share of answers yes where the reference is yes and the answer yes or no; 0 without any."""
    return _or_zero(mean([float(one["prediction"] == "yes") for one in results if _is_decided_positive(one)]))


def aggregate_f1_score(results: Results) -> Estimate:
    """Return the harmonic mean of precision and recall; 0 without a right yes."""
    both = [2.0 * (one["prediction"] == one["ground_truth"] == "yes") for one in results]
    wrong = [
        float(one["prediction"] != one["ground_truth"] and (_is_decided_positive(one) or one["prediction"] == "yes"))
        for one in results
    ]
    return _or_zero(ratio(both, [right + missed for right, missed in zip(both, wrong, strict=True)]))


def aggregate_yes_ratio(results: Results) -> Estimate:
    """Return the share of answers yes."""
    return mean([float(result["prediction"] == "yes") for result in results])


def _is_decided_positive(result: Mapping[str, Any]) -> bool:
    return bool(result["ground_truth"] == "yes" and result["prediction"] in ("yes", "no"))


def _or_zero(made: Estimate) -> Estimate:
    return Estimate(0.0) if made.value is None else made
