"""TextVQA: questions whose answer is written in the picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.outcome import Estimate
from lmms_eval.metrics.vqa import answer_accuracy, normalised
from lmms_eval.tasks._task_utils.question import framed
from lmms_eval.tasks._task_utils.submissions import stamp, written_json


def doc_to_text(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> str:
    """Return the question, its first letter alone a capital, in its frame; ``ocr`` adds the words that were found."""
    words = ""
    if (lmms_eval_specific_kwargs or {}).get("ocr"):
        words = f"\nReference OCR token: {', '.join(doc['ocr_tokens'])}"
    return framed(doc["question"].capitalize() + words, lmms_eval_specific_kwargs)


def scored(doc: Mapping[str, Any], results: Sequence[str]) -> tuple[str, float]:
    """Return the answer as it is compared, and its accuracy; 0 without reference answers."""
    answer = normalised(results[0])
    return answer, answer_accuracy(answer, [normalised(one) for one in doc["answers"] or ()])


def doc_to_gold(doc: Mapping[str, Any]) -> str:
    """Return the answer that most people gave."""
    return str(Counter(doc["answers"] or [""]).most_common(1)[0][0])


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    """Score the answer, and return it as it is submitted."""
    answer, accuracy = scored(doc, results)
    return {"exact_match": accuracy, "submission": {"question_id": doc["question_id"], "answer": answer}}


def write_submission(answers: Sequence[Mapping[str, Any]], args: Any, task: Any) -> Estimate:
    """Write the file for the organisers, named by the task: both splits of a run end in the same second."""
    return written_json(answers, f"{task.name}_submission_{stamp()}.json", args)
