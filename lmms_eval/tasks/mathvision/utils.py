"""MATH-Vision: competition mathematics with pictures; the answer is a letter or a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lmms_eval.api.judging import Verdict
from lmms_eval.api.outcome import Estimate, Unscored
from lmms_eval.errors import ItemError
from lmms_eval.filters.reasoning import strip_pairs
from lmms_eval.metrics.math_answers import installed_reader
from lmms_eval.tasks._task_utils import binary_judge, judge_texts
from lmms_eval.tasks._task_utils.estimates import by, mean
from lmms_eval.tasks._task_utils.question import Doc, Settings, option_lines
from lmms_eval.tasks._task_utils.scoring_data import depends_on
from lmms_eval.tasks.mathvision.answers import final_answer, is_equal

if TYPE_CHECKING:
    from PIL import Image

_INSTRUCTION = 'Please solve the problem step by step and put your answer in one "\\boxed{}".'
_THOUGHTS = (("<think>", "</think>"), ("<thinking>", "</thinking>"))


def doc_to_visual(doc: Doc) -> list[Image.Image]:
    """Return the picture as RGB."""
    return [doc["decoded_image"].convert("RGB")]


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> str:
    """Return instruction, question and choices, and the setting ``mc_prompt`` after the choices."""
    text = f"{_INSTRUCTION}{doc['question']}"
    if not doc["options"]:
        return text
    closing = (lmms_eval_specific_kwargs or {}).get("mc_prompt")
    return f"{text}\nChoices: {option_lines(doc['options'])}" + (f"\n{closing}" if closing else "")


def _option(doc: Doc) -> str:
    """The text of the right option."""
    place = "ABCDEFGHIJ".find(doc["answer"]) if len(doc["answer"]) == 1 else -1
    if not 0 <= place < len(doc["options"]):
        raise ItemError(
            f"mathvision: column 'answer' holds {doc['answer']!r}, not one of the {len(doc['options'])} options"
        )
    return str(doc["options"][place])


@depends_on(lambda _: installed_reader())
def process_results(doc: Doc, results: Sequence[str]) -> dict[str, Any]:
    """Score the answer of a response against the reference, and against the text of the right option.

    Raises:
        ItemError: the right option is not there.
        NotEvaluated: the package that reads LaTeX does not start.
    """
    golds = [doc["answer"], _option(doc)] if doc["options"] else [doc["answer"]]
    answers = [final_answer(result) for result in results]
    scores = [any(is_equal(answer, gold) for gold in golds) for answer in answers]
    parts = {"subject": doc.get("subject"), "level": doc.get("level")}
    return {"mathvision_standard_eval": {"response": list(results), "scores": scores, **parts}}


def aggregate(results: Sequence[Mapping[str, Any]]) -> Estimate:
    """Return the share of right answers in percent, and those of subjects and levels."""
    rows = [{**result, "score": float(result["scores"][0])} for result in results]
    parts = {
        key: by([row for row in rows if row.get(key) is not None], key, lambda row: row["score"], 100.0)
        for key in ("subject", "level")
    }
    found = mean([row["score"] for row in rows], 100.0, parts)
    return found if found.value is None else replace(found, value=round(found.value, 2))


def doc_to_judge(doc: Doc, results: Sequence[str], lmms_eval_specific_kwargs: Settings = None) -> list[dict[str, Any]]:
    """Return the question whether the answer, without its thoughts, is right."""
    answer = strip_pairs(results[0], _THOUGHTS)
    return [binary_judge.question(doc["question"], doc["answer"], answer, lmms_eval_specific_kwargs)]


@depends_on(judge_texts.identity(binary_judge.TEXT))
def judged_results(
    doc: Doc,  # noqa: ARG001 - interface
    results: Sequence[str],  # noqa: ARG001 - interface
    verdicts: Mapping[str, Verdict] | None = None,
) -> dict[str, Any]:
    """Score as the judge says, by the official reading of its reply and the fixed one."""
    scores = binary_judge.scores(verdicts, "llm_as_judge_eval")
    return {name: score if isinstance(score, Unscored) else float(score) for name, score in scores.items()}


def aggregate_judged(results: Sequence[float], task: Any) -> Estimate:
    """Return the mean, and which text the judge was given."""
    return judge_texts.noted(mean(results), task, binary_judge.TEXT)
