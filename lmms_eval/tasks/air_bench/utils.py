"""AIR-Bench, foundation part: multiple choice about sounds, music and speech."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.outcome import Estimate
from lmms_eval.errors import ItemError
from lmms_eval.metrics.mmmu import audio_letter
from lmms_eval.tasks._task_utils.estimates import by, mean, rounded
from lmms_eval.tasks._task_utils.question import Doc, framed, name_of
from lmms_eval.tasks._task_utils.submissions import written_json

_COLUMNS = {"A": "choice_a", "B": "choice_b", "C": "choice_c", "D": "choice_d"}
_DIGITS = 5


def choices_of(doc: Doc) -> dict[str, str]:
    """Return the choices that the question has, by letter. Raises ``ItemError`` if it has none."""
    choices = {letter: doc[column] for letter, column in _COLUMNS.items() if doc.get(column)}
    if not choices:
        raise ItemError("air_bench_foundation: the columns 'choice_a' to 'choice_d' are all empty")
    return choices


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> str:
    """Return question and choices, each on a line that ends, in their frame."""
    lines = "".join(f"{letter}. {choice}\n" for letter, choice in choices_of(doc).items())
    return framed(f"{doc['question']}\n{lines}", lmms_eval_specific_kwargs)


def doc_to_target(doc: Doc) -> str:
    """Return the letter of the first choice that is the answer. Raises ``ItemError`` if no choice is."""
    for letter, choice in choices_of(doc).items():
        if choice == doc["answer_gt"]:
            return letter
    raise ItemError(f"air_bench_foundation: column 'answer_gt' holds {doc['answer_gt']!r:.200}: no choice is that")


def doc_to_gold(doc: Doc) -> str:
    """Return the letter of the right choice in parentheses."""
    return f"({doc_to_target(doc)})"


def process_results(doc: Doc, results: Sequence[str]) -> dict[str, Any]:
    """Compare the letter that the answer names with the right one, and return it as it is submitted.

    Raises:
        ItemError: there are no choices, no choice is the answer, or ``uniq_id`` is neither text nor whole number.
    """
    name = name_of(doc, "uniq_id")
    letter = audio_letter(results[0].strip(), tuple(choices_of(doc)), name)
    score = float(letter == doc_to_target(doc))
    return {"accuracy": {"score": score, "task": doc["task_name"]}, "submission": {name: letter}}


def aggregate(results: Sequence[Mapping[str, Any]]) -> Estimate:
    """Return the share of right answers with five decimals, also by task."""
    tasks = by(results, "task", lambda row: row["score"])
    return rounded(mean([row["score"] for row in results], sub_scores={"task": tasks}), _DIGITS)


def write_submission(results: Sequence[Mapping[str, Any]], args: Any, task: Any) -> Estimate:
    """Write the letters under the task's name: three tasks share the file's name in the reference."""
    return written_json(list(results), f"{task.name}_air_bench_test_submission.json", args)
