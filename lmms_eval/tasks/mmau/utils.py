"""MMAU: multiple choice about sounds, music and speech."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.outcome import Estimate
from lmms_eval.errors import ItemError
from lmms_eval.metrics.mmmu import audio_letter
from lmms_eval.tasks._task_utils.estimates import by, mean, rounded
from lmms_eval.tasks._task_utils.question import LETTERS, Doc, framed, option_lines
from lmms_eval.tasks._task_utils.submissions import written_json

_LETTERS = LETTERS[:4]
_DIGITS = 5
_SUBMITTED = (
    "id", "audio_id", "question", "choices", "model_prediction", "dataset", "task", "split", "category",
    "sub-category", "difficulty",
)  # fmt: skip


def choices_of(doc: Doc) -> list[str]:
    """Return the choices, which the data hold as JSON text.

    Raises:
        ItemError: the column is not a list of texts.
    """
    held = doc["choices"]
    try:
        choices = json.loads(held) if isinstance(held, str) else held
    except ValueError:
        choices = None
    if not isinstance(choices, list) or not choices or not all(isinstance(choice, str) for choice in choices):
        raise ItemError(f"mmau: column 'choices' holds {held!r:.200}: it must be a list of texts, as JSON")
    return choices


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> str:
    """Return question and choices in their frame."""
    return framed(f"{doc['question']}\n{option_lines(choices_of(doc))}", lmms_eval_specific_kwargs)


def doc_to_gold(doc: Doc) -> str:
    """Return the letter of the right choice in parentheses; the answer itself where the choices lack it."""
    right = [_compared(choice) for choice in choices_of(doc)]
    answer = _compared(doc["answer"] or "")
    return f"({LETTERS[right.index(answer)]})" if answer in right else answer


def process_results(doc: Doc, results: Sequence[str]) -> dict[str, Any]:
    """Compare the choice that the answer names with the right one, and return the document with it.

    Letters A to D are looked for whatever the document's own are; one that it does not have names no choice.
    """
    choices = choices_of(doc)
    own = LETTERS[: len(choices)]
    letter = audio_letter(results[0].strip(), max(own, _LETTERS, key=len), doc["id"], own)
    chosen = choices[own.index(letter)] if letter in own else ""
    is_right = bool(chosen) and _compared(chosen) == _compared(doc["answer"] or "")
    return {
        "accuracy": {"overall": float(is_right), "task": doc["task"]},
        "submission": {**doc, "model_prediction": chosen},
    }


def _compared(text: str) -> str:
    return text.strip().lower()


def aggregate(results: Sequence[Mapping[str, Any]]) -> Estimate:
    """Return the share of right answers in percent with five decimals, also by task."""
    tasks = by(results, "task", lambda row: row["overall"], 100)
    return rounded(mean([row["overall"] for row in results], 100, {"task": tasks}), _DIGITS)


def write_submission(results: Sequence[Mapping[str, Any]], args: Any) -> Estimate:
    """Write the file for the organisers."""
    rows = [{name: row.get(name) for name in _SUBMITTED} for row in results]
    return written_json(rows, "mmau_submission.json", args)
