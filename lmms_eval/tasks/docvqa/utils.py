"""DocVQA and InfographicVQA: the file of answers to the test split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.outcome import Estimate
from lmms_eval.tasks._task_utils.submissions import written_json


def answer_to_submit(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    """Return the answer as it is submitted, under the metric ``submission``."""
    return {"submission": {"questionId": int(doc["questionId"]), "answer": results[0]}}


def docvqa_answer_to_submit(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    """Return the answer as it is submitted, under both names that the benchmark's users know."""
    made = answer_to_submit(doc, results)
    return {**made, "anls": made["submission"]}


def write_docvqa(answers: Sequence[Mapping[str, Any]], args: Any) -> Estimate:
    """Write the file for the organisers of DocVQA."""
    return written_json(answers, "docvqa_test_for_submission.json", args)


def write_infovqa(answers: Sequence[Mapping[str, Any]], args: Any) -> Estimate:
    """Write the file for the organisers of InfographicVQA."""
    return written_json(answers, "infovqa_test_for_submission.json", args)
