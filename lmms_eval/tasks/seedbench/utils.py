"""SEED-Bench: multiple choice about pictures and frames of videos."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.outcome import Estimate
from lmms_eval.tasks._task_utils.estimates import mean
from lmms_eval.tasks._task_utils.question import Doc, option_lines
from lmms_eval.utils.answer_reading import FIRST_CHARACTER, NOTHING, note_reading

_INSTRUCTION = "Answer with the option's letter from the given choices directly."


def doc_to_visual(doc: Doc) -> list[Any]:
    """Return the pictures, or the frames of the video, as RGB."""
    return [image.convert("RGB") for image in doc["image"]]


def doc_to_choice(doc: Doc) -> list[str]:
    """Return the four choices."""
    return [doc[f"choice_{letter}"] for letter in "abcd"]


def doc_to_target(doc: Doc) -> str:
    """Return the text of the right choice."""
    return str(doc[f"choice_{doc['answer'].lower()}"])


def doc_to_text(doc: Doc) -> str:
    """Return question, choices and instruction."""
    return f"{doc['question']}\n{option_lines(doc_to_choice(doc))}\n{_INSTRUCTION}"


def process_results(doc: Doc, results: Sequence[str]) -> dict[str, Any]:
    """Return the answer's first character and the letter of the right choice, for all and for its kind."""
    said = results[0].strip()[:1]
    if said.upper() in ("A", "B", "C", "D"):
        note_reading(FIRST_CHARACTER, said)
    else:
        note_reading(NOTHING)
    scored = {"pred": said, "answer": doc["answer"], "question_id": doc["question_id"]}
    return {f"seed_{doc['data_type']}": scored, "seed_all": scored}


def aggregate(results: Sequence[Mapping[str, Any]]) -> Estimate:
    """Return the share of right letters, in any case."""
    return mean([float(one["pred"].lower().strip() == one["answer"].lower().strip()) for one in results])
