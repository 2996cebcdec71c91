"""OCRBench: 1,000 questions about texts in pictures; an answer is right that contains a reference answer."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lmms_eval.api.outcome import Estimate, SubScore
from lmms_eval.tasks._task_utils.estimates import by, mean
from lmms_eval.tasks._task_utils.submissions import written

log = logging.getLogger(__name__)
RECOGNITION = (
    "Regular Text Recognition", "Irregular Text Recognition", "Artistic Text Recognition", "Handwriting Recognition",
    "Digit String Recognition", "Non-Semantic Text Recognition",
)  # fmt: skip
OTHERS = (
    "Scene Text-centric VQA", "Doc-oriented VQA", "Key Information Extraction",
    "Handwritten Mathematical Expression Recognition",
)  # fmt: skip
QUESTIONS = 1000
_FORMULAS = "HME100k"
_HALF_WIDTH = {full: full - 0xFEE0 for full in range(0xFF01, 0xFF5F)} | {0x3000: " "}


def _plain(text: str, is_formula: bool) -> str:
    if is_formula:
        return text.strip().replace("\n", " ").replace(" ", "")
    return text.translate(_HALF_WIDTH).lower().strip().replace("\n", " ")


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    """Score the answer 1 if it contains one of the reference answers, else 0."""
    is_formula = doc["dataset"] == _FORMULAS
    golds = doc["answer"] if isinstance(doc["answer"], list) else [doc["answer"]]
    answer = _plain(results[0], is_formula)
    score = int(any(_plain(str(gold), is_formula) in answer for gold in golds))
    scored = {"question_type": doc["question_type"], "score": score}
    return {"ocrbench_accuracy": {**scored, "prediction": results[0].strip(), "ground_truth": doc["answer"]}}


def aggregate(results: Sequence[Mapping[str, Any]], args: Any) -> Estimate:
    """Return the number of right answers over 1,000, whatever the number of questions; write the counts by type."""
    types = by(results, "question_type", lambda result: result["score"])
    for name in types.keys() - {*RECOGNITION, *OTHERS}:
        log.warning("ocrbench: unknown question_type %r counts in the total alone", name)
    right = sum(result["score"] for result in results)
    counts = {name: _right(types.get(name)) for name in (*RECOGNITION, *OTHERS)}
    recognised = sum(counts[name] for name in RECOGNITION)
    lines = [f"{name}: {count}" for name, count in counts.items()]
    text = "\n".join([*lines, f"Text Recognition(Total 300): {recognised}", f"Final Score(Total 1000): {right}", ""])
    file = written(lambda path: path.write_text(text, "utf-8"), "ocrbench_results.txt", args, "results")
    made = mean([result["score"] for result in results], len(results) / QUESTIONS, {"question_type": types})
    details = {"ocrbench": {"recognition_score": recognised, "Final_score": right}, **file.details}
    return replace(made, details=details, notes=(f"{right} of {len(results)} right, divided by {QUESTIONS} by rule",))


def _right(score: SubScore | None) -> int:
    return 0 if score is None else round(score.value * score.n)
