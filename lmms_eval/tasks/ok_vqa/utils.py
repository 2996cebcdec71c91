"""OK-VQA: questions that need knowledge from outside of the picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.outcome import Estimate
from lmms_eval.tasks._task_utils.submissions import stamp, written_json
from lmms_eval.tasks.textvqa.utils import scored


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    """Score the answer, and return it as it is submitted."""
    answer, accuracy = scored(doc, results)
    return {"exact_match": accuracy, "submission": {"image": f"{doc['question_id']}.jpg", "answer": answer}}


def write_submission(answers: Sequence[Mapping[str, Any]], args: Any) -> Estimate:
    """Write the file for the organisers."""
    return written_json(answers, f"ok_vqa-test-submission-{stamp('%Y-%m%d-%H%M-%S')}.json", args)
