"""ScienceQA: multiple choice from school lessons, many with a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.errors import ItemError
from lmms_eval.tasks._task_utils.question import LETTERS, Doc, framed, option_lines
from lmms_eval.utils.answer_reading import BEFORE_STOP, LETTER_ALONE, NOTHING, note_reading


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> str:
    """Return context, question and choices, in the form that the settings name (``default``, ``qwen_vl``)."""
    settings = lmms_eval_specific_kwargs or {}
    context, lettered = doc["hint"], option_lines(doc["choices"])
    if settings.get("format") == "qwen_vl":
        return f"Context: {context or 'N/A'}\nQuestion: {doc['question']}\nOptions: {lettered}\nAnswer:"
    before = f"Context: {context}\n" if context else ""
    return framed(f"{before}{doc['question']}\n{lettered}", settings)


def doc_to_target(doc: Doc) -> str:
    """Return the letter of the right choice. Raises ``ItemError`` if the document has no choice of that number."""
    place = doc["answer"]
    if not 0 <= place < len(doc["choices"]):
        raise ItemError(f"scienceqa: column 'answer' holds {place}, but there are {len(doc['choices'])} choices")
    return LETTERS[place]


def process_results(doc: Doc, results: Sequence[str]) -> dict[str, float]:
    """Score an answer that is the letter, or begins with it and a full stop."""
    answer, target = results[0].strip(), doc_to_target(doc)
    letters = tuple(LETTERS[: len(doc["choices"])])
    begins = len(answer) > 1 and answer[0].isupper() and answer[1] == "."
    if answer.upper() in letters:
        note_reading(LETTER_ALONE, answer)
    elif begins and answer[0] in letters:
        note_reading(BEFORE_STOP, answer[0])
    else:
        note_reading(NOTHING)
    return {"exact_match": float(answer.lower() == target.lower() or (begins and answer[0] == target))}
