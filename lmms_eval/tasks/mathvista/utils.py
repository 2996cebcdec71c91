"""MathVista: mathematics in pictures; answers are choices, numbers and lists, extracted by a judge where need be."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lmms_eval.api.judging import Verdict
from lmms_eval.api.outcome import Estimate, SubScore, Unscored
from lmms_eval.errors import ItemError
from lmms_eval.metrics.text import levenshtein_distance
from lmms_eval.tasks._task_utils import judge_texts
from lmms_eval.tasks._task_utils.estimates import by, mean, part, rounded
from lmms_eval.tasks._task_utils.question import LETTERS, Doc, Settings
from lmms_eval.tasks._task_utils.scoring_data import depends_on
from lmms_eval.tasks._task_utils.submissions import written_json
from lmms_eval.tasks._task_utils.verdicts import reply_of
from lmms_eval.tasks.mathvista import prompts
from lmms_eval.tasks.mathvista.prompts import MULTI_CHOICE

if TYPE_CHECKING:
    from PIL import Image


_LETTER = re.compile(r"\(([a-zA-Z])\)")


def read(doc: Doc, response: str) -> str | None:
    """Return the answer of a response that is nothing else; ``None`` if it has to be extracted."""
    if not response or (doc["question_type"] == MULTI_CHOICE and response in _choices(doc)):
        return response
    number = {"integer": int, "float": float}.get(doc["answer_type"])
    try:
        return None if number is None else str(number(response))
    except ValueError:
        return None


def judged(doc: Doc, extraction: str, as_the_reference: bool = False) -> tuple[str | None, bool]:
    """Return an answer as it is compared with the reference answer, and whether it is right.

    Choices are compared by their text, numbers rounded to the stated places; if no places are stated, as they are.

    Args:
        doc: the document.
        extraction: the answer.
        as_the_reference: compare as the benchmark's usual harness does, which cannot round to a number of places that
            is a float, and rounds to a whole number if no places are stated.

    Raises:
        ItemError: a question with choices has none.
    """
    precision, answer = doc["precision"], doc.get("answer")
    is_float = doc["answer_type"] == "float" and doc["question_type"] != MULTI_CHOICE
    if as_the_reference and is_float and isinstance(precision, float):
        return None, False
    places = precision if as_the_reference or precision is None else int(precision)
    prediction = _normalised(doc, extraction, places)
    if is_float and precision is None and not as_the_reference:
        try:
            return prediction, float(extraction) == float(answer)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return prediction, False
    return prediction, None not in (prediction, answer) and str(prediction).strip() == str(answer).strip()


def _normalised(doc: Doc, extraction: str, precision: int | None) -> str | None:
    if doc["question_type"] == MULTI_CHOICE:
        return _chosen(extraction.strip(), _choices(doc))
    try:
        if doc["answer_type"] == "integer":
            return str(int(float(extraction)))
        if doc["answer_type"] == "float":
            return str(round(float(extraction), precision))
    except (ValueError, OverflowError):
        return None
    return extraction


def _chosen(extraction: str, choices: Sequence[str]) -> str:
    """Return the choice of a letter, else the one that is most like the text."""
    found = _LETTER.search(extraction)
    letter = found[1].upper() if found else extraction
    if len(letter) == 1 and letter in LETTERS[: len(choices)]:
        return choices[LETTERS.index(letter)]
    return min(choices, key=lambda choice: levenshtein_distance(letter, choice))


def _choices(doc: Doc) -> Sequence[str]:
    choices: Sequence[str] | None = doc["choices"]
    if not choices:
        raise ItemError("mathvista: column 'choices' is empty, but column 'question_type' says multi_choice")
    return choices


Row = Mapping[str, Any]
_QUESTION = "extraction"
_JUDGE_TOKENS = 256
_PARTS = ("question_type", "answer_type")
_METADATA = ("language", "source", "category", "task", "context", "grade", "skills")


def doc_to_visual(doc: Doc) -> list[Image.Image]:
    """Return the picture as RGB."""
    return [doc["decoded_image"].convert("RGB")]


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> str:
    """Return question, choices and hint in the task's form."""
    return prompts.question(doc, lmms_eval_specific_kwargs or {})


def doc_to_judge(doc: Doc, results: Sequence[str], lmms_eval_specific_kwargs: Settings = None) -> list[dict[str, Any]]:
    """Return the request to extract the answer; none about a response that is nothing but an answer."""
    if read(doc, results[0]) is not None:
        return []
    prompt = prompts.extraction(doc, results[0], lmms_eval_specific_kwargs)
    return [{"name": _QUESTION, "prompt": prompt, "generation": {"max_new_tokens": _JUDGE_TOKENS}}]


@depends_on(judge_texts.identity(prompts.EXTRACT))
def process_results(
    doc: Doc, results: Sequence[str], verdicts: Mapping[str, Verdict] | None = None
) -> dict[str, Row | Unscored]:
    """Score the answer of a response, with the stated places as a number and as the usual harness has them.

    Raises:
        ItemError: a question with choices has none.
    """
    response = results[0]
    direct = read(doc, response)
    extraction = reply_of(verdicts, _QUESTION) if direct is None else direct
    if direct is None and isinstance(extraction, str):
        extraction = extraction.strip()
    told = "" if isinstance(extraction, Unscored) else extraction
    row = {
        "question_id": doc["pid"], "query": doc["query"], "choices": doc["choices"], "answer": doc.get("answer"),
        "extraction": told, "question_type": doc["question_type"], "answer_type": doc["answer_type"],
        "precision": doc["precision"], "metadata": doc["metadata"],
        "is_extracted": direct is None,
    }  # fmt: skip
    fixed, reference = (
        {**row, "prediction": prediction, "true_false": is_right}
        for prediction, is_right in (judged(doc, told), judged(doc, told, as_the_reference=True))
    )
    submission = {**fixed, "response": response}
    if isinstance(extraction, Unscored):
        return {
            "llm_as_judge_eval": extraction, "llm_as_judge_eval_reference": extraction, "submission": submission
        }  # fmt: skip
    return {"llm_as_judge_eval": fixed, "llm_as_judge_eval_reference": reference, "submission": submission}


def aggregate(results: Sequence[Row], task: Any) -> Estimate:
    """Return the share of right answers in percent, and those of all parts of the documents, best first.

    The judge's text is reported if a judge extracted answers.
    """
    parts = _parts(results)
    found = replace(aggregate_reference(results), sub_scores=parts)
    if found.value is None:
        return found
    right = sum(bool(row["true_false"]) for row in results)
    table: dict[str, Any] = {"average": {"accuracy": found.value, "correct": right, "total": len(results)}}
    for key, scores in parts.items():
        table[key] = {
            name: {"accuracy": f"{one.value:.2f}", "correct": round(one.value * one.n / 100), "total": one.n}
            for name, one in scores.items()
        }
    made = replace(found, details={"mathvista_scores": table})
    was_asked = any(row.get("is_extracted") for row in results)
    return judge_texts.noted(made, task, prompts.EXTRACT) if was_asked else made


def aggregate_reference(results: Sequence[Row]) -> Estimate:
    """Return the share of right answers in percent."""
    return rounded(mean([_score(row) for row in results], 100.0), 2)


def _parts(results: Sequence[Row]) -> dict[str, dict[str, SubScore]]:
    """Divide by columns and by metadata; a document counts for each of its skills."""
    found = {key: by(results, key, _score, 100.0) for key in _PARTS}
    for key in _METADATA:
        divided: dict[str, list[float]] = {}
        for row in results:
            names = row["metadata"].get(key)
            for name in names if isinstance(names, list | tuple) else [names]:
                divided.setdefault(str(name), []).append(_score(row))
        found[key] = {name: one for name, scores in divided.items() if (one := part(scores, 100.0)) is not None}
    return {
        key: dict(sorted(scores.items(), key=lambda item: item[1].value, reverse=True))
        for key, scores in found.items()
    }  # fmt: skip


def _score(row: Row) -> float:
    return float(row["true_false"])


def write_submission(results: Sequence[Row], args: Any) -> Estimate:
    """Write responses and extracted answers by the problems' ids."""
    return written_json({row["question_id"]: row for row in results}, "mathvista_test_for_submission.json", args)
