"""HallusionBench: yes-or-no questions about figures. Some figures are altered to contradict what is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lmms_eval.api.judging import Verdict
from lmms_eval.api.outcome import Estimate
from lmms_eval.errors import ItemError
from lmms_eval.tasks._task_utils import estimates
from lmms_eval.tasks._task_utils.judge_texts import JudgeText, identity, noted
from lmms_eval.tasks._task_utils.question import Doc, Settings, name_of
from lmms_eval.tasks._task_utils.scoring_data import depends_on
from lmms_eval.tasks._task_utils.verdicts import NO_JUDGE

WRONG, RIGHT, UNCLEAR = 0, 1, 2
_NAME = ("category", "subcategory", "set_id", "figure_id", "question_id")
_NAMES = ("visual_input", "set_id", "figure_id", "question_id", "gt_answer")
_FIGURE = ("category", "subcategory", "set_id", "figure_id")
_QUESTION = ("category", "subcategory", "set_id", "question_id")
TEXT = JudgeText(
    "hallusion_judge",
    """You are a teacher who marks an answer. Read the question, the reference answer and the student's answer.

Write one word and nothing else:
correct - if the student's answer means the same as the reference answer, or does not contradict it;
incorrect - if it contradicts the reference answer;
unclear - if one cannot tell from it what the student thinks.

Question: {question}
Reference answer: {reference}
Student's answer: {prediction}
Your word:""",
    "57e1976dd44af7df",
)


def doc_to_gold(doc: Doc) -> str:
    """Return the reference answer with its yes or no."""
    return f"{'Yes' if name_of(doc, 'gt_answer') == '1' else 'No'}. {doc['gt_answer_details']}"


def doc_to_judge(doc: Doc, results: Sequence[str], lmms_eval_specific_kwargs: Settings = None) -> list[dict[str, Any]]:
    """Return the question whether the answer agrees with the reference answer."""
    prompt = TEXT.used(lmms_eval_specific_kwargs).filled(
        question=doc["question"], reference=doc["gt_answer_details"], prediction=results[0].strip()
    )
    return [{"name": "agreement", "prompt": prompt, "reader": "text", "generation": {"max_new_tokens": 16}}]


@depends_on(identity(TEXT))
def process_results(doc: Doc, results: Sequence[str], verdicts: Mapping[str, Verdict]) -> dict[str, Any]:
    """Give the document with the judge's mark to all three metrics; a judge that gave no reply counts as unclear."""
    verdict = verdicts.get("agreement")
    if verdict is None:
        return dict.fromkeys(("aAcc", "fAcc", "qAcc"), NO_JUDGE)
    mark = UNCLEAR if verdict.text is None else read(verdict.text)
    return _rows(doc, results, mark, verdict.text is None)


def process_results_static(doc: Doc, results: Sequence[str]) -> dict[str, Any]:
    """Mark the answer without a judge: one that says yes counts 1, any other 0.

    Raises:
        ItemError: the reference answer is neither 0 nor 1.
    """
    gold = name_of(doc, "gt_answer")
    if gold not in ("0", "1"):
        raise ItemError(f"hallusion_bench: column 'gt_answer' holds {gold!r}: it must be 0 or 1")
    said = "1" if "yes" in results[0].lower() else "0"
    return _rows(doc, results, RIGHT if said == gold else WRONG)


def _rows(doc: Doc, results: Sequence[str], mark: int, is_lost: bool = False) -> dict[str, Any]:
    columns = {name: value for name, value in doc.items() if name != "image"}
    columns |= {name: name_of(doc, name) for name in _NAMES}  # numbers in some copies of the data
    row = {**columns, "model_prediction": results[0].strip(), "mark": mark, "judge_failed": is_lost}
    return {"aAcc": row, "fAcc": row, "qAcc": row}


def read(reply: str) -> int:
    """Read a judge's reply: ``incorrect`` anywhere, else ``correct`` anywhere, else unclear."""
    text = reply.lower()
    return WRONG if "incorrect" in text else RIGHT if "correct" in text else UNCLEAR


def _is_right(row: Doc) -> bool:
    """Return whether an answer is right; without a figure (VS, figure 0) it may also leave the question open."""
    return bool(row["mark"] == RIGHT) or (row["mark"] == UNCLEAR and _is_blind(row))


def _is_blind(row: Doc) -> bool:
    return bool(row["category"] == "VS" and row["figure_id"] == "0")


def aggregate_all(rows: Sequence[Doc], task: Any) -> Estimate:
    """Share of right answers, in percent, with kinds of errors.

    Raises:
        ItemError: two documents have the same category, subcategory, set, figure and question.
    """
    names = Counter(_key(row, _NAME) for row in rows)
    if twice := [name for name, count in names.items() if count > 1]:
        raise ItemError(f"hallusion_bench: {', '.join(_NAME)} must name one document; {twice[0]} names several")
    right = [_is_right(row) for row in rows]
    kinds = Counter(_kind(row) for row, is_right in zip(rows, right, strict=True) if not is_right)
    table = {
        "note": "all accuracy per question", "total": len(rows), "correct": sum(right),
        "wrong": len(rows) - sum(right), **{kind: kinds[kind] for kind in ("LH", "VI", "Mix")},
    }  # fmt: skip
    return _told(_percent(right), "all_questions", table, rows, task)


def _kind(row: Doc) -> str | None:
    """Name the error behind a wrong answer: language hallucination, visual illusion or a mixture of both."""
    if row["category"] == "VD":
        return "Mix" if row["figure_id"] != "0" and row["mark"] == WRONG else "VI"
    if row["visual_input"] == "0":
        return "LH" if row["mark"] == WRONG else None
    return "Mix" if row["mark"] == WRONG else "VI"


def aggregate_figures(rows: Sequence[Doc], task: Any) -> Estimate:
    """Share of figures about which every question is answered right, in percent."""
    groups = _grouped([row for row in rows if not _is_blind(row)], _FIGURE)
    shares = [sum(right) / len(right) for right in groups]
    whole, none = shares.count(1.0), shares.count(0.0)
    table = {
        "note": "all accuracy per image (consistency test)", "total": len(groups), "correct": whole, "wrong": none,
        "inconsistent": len(groups) - whole - none, "score": estimates.mean(shares).value,
    }  # fmt: skip
    return _told(_percent([all(right) for right in groups]), "figures", table, rows, task)


def aggregate_questions(rows: Sequence[Doc], task: Any) -> Estimate:
    """Share of questions that are answered right about every figure, in percent."""
    groups = _grouped(rows, _QUESTION)
    whole = sum(all(right) for right in groups)
    table = {
        "note": "all accuracy per question pair", "total": len(groups), "total_q": len(rows), "correct": whole,
        "wrong": len(groups) - whole,
    }  # fmt: skip
    return _told(_percent([all(right) for right in groups]), "question_pairs", table, rows, task)


def _key(row: Doc, columns: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(row[column]) for column in columns)


def _grouped(rows: Sequence[Doc], columns: Sequence[str]) -> list[list[bool]]:
    groups: dict[tuple[str, ...], list[bool]] = {}
    for row in rows:
        groups.setdefault(_key(row, columns), []).append(_is_right(row))
    return list(groups.values())


def _percent(right: Sequence[bool]) -> Estimate:
    return estimates.rounded(estimates.mean([float(one) for one in right], 100), 4)


def _told(estimate: Estimate, name: str, table: Doc, rows: Sequence[Doc], task: Any) -> Estimate:
    lost = sum(row["judge_failed"] for row in rows)
    notes = (f"failed: {lost} of {len(rows)} answers got no reply of the judge and count as unclear",) if lost else ()
    made = replace(estimate, details={f"hallusion_bench_{name}": table}, notes=notes)
    return noted(made, task, TEXT) if name == "all_questions" and task.is_judged else made
