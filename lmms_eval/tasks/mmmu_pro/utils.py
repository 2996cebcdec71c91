"""MMMU-Pro: ten options to each question; pictures with the text, or the whole question as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.outcome import Estimate
from lmms_eval.tasks._task_utils.mmmu import accuracy, chosen, listed, options
from lmms_eval.tasks._task_utils.question import Doc, Settings, option_lines

Row = Mapping[str, Any]
QWEN = "qwen3_vl"


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> str:
    """Return question, options and instruction; pictures are named ``<image N>``."""
    instruction = (lmms_eval_specific_kwargs or {}).get("post_prompt") or ""
    if (lmms_eval_specific_kwargs or {}).get("format") == QWEN:
        return listed(doc["question"], doc, lmms_eval_specific_kwargs, instruction)
    return f"{doc['question']}\n{option_lines(options(doc))}\n\n{instruction}"


def doc_to_text_vision(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> str:
    """Return the instruction alone, since the picture shows the question; for Qwen3-VL the options too."""
    settings = lmms_eval_specific_kwargs or {}
    instruction: str = settings.get("post_prompt") or ""
    if settings.get("format") == QWEN:
        return listed(settings.get("vision_prompt") or "", doc, None, instruction)
    return instruction


def process_results(doc: Doc, results: Sequence[str]) -> dict[str, Any]:
    """Return the letter that the answer names and the right one.

    Raises:
        ItemError: the document has no options.
    """
    return {"mmmu_acc": _row(doc, chosen(doc, results[:1])[0])}


def process_results_vision(doc: Doc, results: Sequence[str]) -> dict[str, Any]:
    """Do as ``process_results``; the reference compares the answer itself with the letter."""
    return process_results(doc, results) | {"mmmu_acc_reference": _row(doc, results[0].strip())}


def _row(doc: Doc, said: str) -> Row:
    return {
        "id": doc["id"],
        "subject": doc["subject"],
        "answer": doc["answer"],
        "parsed_pred": said,
        "score": float(said == doc["answer"]),
    }


def aggregate(results: Sequence[Row]) -> Estimate:
    """Return the share of right letters, also by domain and subject."""
    right = [float(row["parsed_pred"] == row["answer"]) for row in results]
    return accuracy([row["subject"] for row in results], right)
