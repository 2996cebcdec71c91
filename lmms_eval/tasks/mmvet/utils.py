"""MM-Vet: open questions that need several abilities at once; a judge rates each answer from 0 to 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.judging import Verdict
from lmms_eval.api.outcome import Estimate, SubScore, Unscored
from lmms_eval.tasks._task_utils import estimates
from lmms_eval.tasks._task_utils.judge_texts import JudgeText, identity, noted
from lmms_eval.tasks._task_utils.question import Doc, Settings
from lmms_eval.tasks._task_utils.scoring_data import depends_on
from lmms_eval.tasks._task_utils.verdicts import reply_of

CAPABILITIES = ("rec", "ocr", "know", "gen", "spat", "math")
SETS = (
    "rec_gen_know", "rec", "spat_ocr", "spat_math_ocr", "rec_spat", "ocr", "math_ocr", "rec_know", "rec_spat_gen_ocr",
    "rec_gen_ocr_know", "rec_spat_ocr", "rec_ocr", "know_spat_ocr", "rec_spat_know", "spat_gen_ocr",
    "rec_spat_math_ocr",
)  # fmt: skip
_SET_NAMES = {frozenset(name.split("_")): name for name in SETS}
TEXT = JudgeText(
    "mmvet_judge",
    """You rate how right an answer is, in a table. Its columns are the question, the reference answer, the answer to \
rate and the rating. The rating is one of 0.0 (entirely wrong), 0.1, 0.2, and so on up to 1.0 (entirely right). Parts \
of a reference answer that are joined by <AND> must all be in the answer for a rating of 1.0; of parts that are joined \
by <OR> any single one is enough. Complete the last row: write its rating, a number, and nothing else.

Question | Reference answer | Answer | Rating
--- | --- | --- | ---
Which fruits are in the bowl? | apple <AND> pear | There is a melon. | 0.0
Which fruits are in the bowl? | apple <AND> pear | I see one apple. | 0.5
Which fruits are in the bowl? | apple <AND> pear | An apple and a pear. | 1.0
Who wrote the letter? | Ana <OR> her sister | Her sister did. | 1.0
What does the sign warn of? | It warns drivers of deer that cross the road at night. | It is about animals. | 0.4
""",
    "4d9b806e960fcd3f",
)


def doc_to_judge(doc: Doc, results: Sequence[str], lmms_eval_specific_kwargs: Settings = None) -> list[dict[str, Any]]:
    """Return the judge's table with a last row that lacks the rating."""
    reference = doc["answer"].replace("<AND>", " <AND> ").replace("<OR>", " <OR> ")
    row = f"{doc['question']} | {reference} | {results[0]} |"
    prompt = f"{TEXT.used(lmms_eval_specific_kwargs).text}\n{row}"
    return [{"name": "rating", "prompt": prompt, "reader": _rating, "generation": {"max_new_tokens": 128}}]


def _rating(reply: str) -> float | None:
    """Read the first word of a reply as a number from 0 to 1; ``None`` for a number beyond.

    Raises:
        ValueError: it is not a number.
        IndexError: there is no word.
    """
    value = float(reply.split()[0])
    return value if 0 <= value <= 1 else None


@depends_on(identity(TEXT))
def process_results(doc: Doc, results: Sequence[str], verdicts: Mapping[str, Verdict]) -> dict[str, Any]:
    """Score the answer by the judge's number; a reply without a number scores 0, one with a wrong number nothing.

    Of blank replies no model is named, as the benchmark's authors count them as none.
    """
    reply = reply_of(verdicts, "rating")
    if isinstance(reply, Unscored):
        return {"gpt_eval_score": reply}
    try:
        score = _rating(reply)
    except (ValueError, IndexError):
        score = 0.0
    if score is None:
        return {"gpt_eval_score": Unscored(f"the judge's rating is not from 0 to 1: {reply.split()[0]:.20}")}
    row = {
        "question_id": doc["question_id"], "question": doc["question"], "gt_answer": doc["answer"],
        "capabilities": doc["capability"], "pred_answer": results[0], "score": score,
        "eval_model": verdicts["rating"].model if reply.strip() else "",
    }  # fmt: skip
    return {"gpt_eval_score": row}


def aggregate(rows: Sequence[Doc], task: Any) -> Estimate:
    """Mean rating times 100, by capability and by set of capabilities that a question needs."""
    sub_scores = {
        "capability": {
            name: part
            for name in CAPABILITIES
            if (part := _part([row for row in rows if name in row["capabilities"]])) is not None
        },
        "capability_set": estimates.by(rows, _set_name, lambda row: row["score"], 100),
    }
    return noted(estimates.mean([row["score"] for row in rows], 100, sub_scores), task, TEXT)


def _part(rows: Sequence[Doc]) -> SubScore | None:
    return estimates.part([row["score"] for row in rows], 100)


def _set_name(row: Doc) -> str:
    named = [name.strip() for name in row["capabilities"].split(",")]
    return _SET_NAMES.get(frozenset(named), "_".join(sorted(named)))
