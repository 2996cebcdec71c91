"""MuirBench: multiple choice about several pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.outcome import Estimate
from lmms_eval.tasks._task_utils.estimates import by, mean
from lmms_eval.tasks._task_utils.question import Doc, framed, option_lines


def doc_to_visual(doc: Doc) -> list[Any]:
    """Return all pictures as RGB; the marks in the question keep their places."""
    return [image.convert("RGB") for image in doc["image_list"]]


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> str:
    """Return question and options in their frame."""
    return framed(f"{doc['question']}\n{option_lines(doc['options'])}", lmms_eval_specific_kwargs)


def process_results(doc: Doc, results: Sequence[str]) -> dict[str, Any]:
    """Return the filtered answer with the facts of the document."""
    told = {name: doc[name] for name in ("task", "idx", "image_relation", "answer", "image_type")}
    return {"muirbench_score_overall": {"pred": results[0].strip(), **told}}


def is_right(result: Mapping[str, Any]) -> float:
    """Return 1.0 if the answer is the letter of the right option, in any case."""
    return float(result["pred"].strip().lower() == result["answer"].strip().lower())


def aggregate(results: Sequence[Mapping[str, Any]]) -> Estimate:
    """Return the share of right answers, also by task."""
    return mean([is_right(result) for result in results], sub_scores={"task": by(results, "task", is_right)})
