"""VQAv2: short answers about photographs against those of ten people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.outcome import Estimate
from lmms_eval.metrics.vqa import answer_accuracy, normalised
from lmms_eval.tasks._task_utils.submissions import stamp, written_json


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    """Score the answer; where the document has no reference answers, return it as it is submitted."""
    if not doc["answers"]:
        return {"submission": {"question_id": doc["question_id"], "answer": results[0]}}
    people = [normalised(one["answer"], has_words_apart=False) for one in doc["answers"]]
    return {"exact_match": answer_accuracy(normalised(results[0], has_words_apart=False), people)}


def write_submission(answers: Sequence[Mapping[str, Any]], args: Any) -> Estimate:
    """Write the file for the organisers."""
    return written_json(answers, f"vqav2-test-submission-{stamp()}.json", args)
