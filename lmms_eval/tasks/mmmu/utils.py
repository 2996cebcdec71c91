"""MMMU: questions of college subjects with pictures inside the text; multiple choice and open answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.judging import Verdict
from lmms_eval.api.outcome import Estimate
from lmms_eval.errors import ItemError
from lmms_eval.metrics import mmmu
from lmms_eval.tasks._task_utils import binary_judge
from lmms_eval.tasks._task_utils.estimates import mean
from lmms_eval.tasks._task_utils.judge_texts import identity, noted
from lmms_eval.tasks._task_utils.mmmu import PLACE, accuracy, chosen, doc_to_visual, listed, options, picture
from lmms_eval.tasks._task_utils.question import Doc, Settings, option_lines, read_list, times_shown
from lmms_eval.tasks._task_utils.scoring_data import depends_on
from lmms_eval.tasks._task_utils.submissions import written_json

__all__ = ["doc_to_visual"]
Row = Mapping[str, Any]
QWEN = "qwen3_vl"
_ONE_PICTURE = 3
"""Parts of a text that names one: before it, its number, after it."""
SPLITS = ("dev", "validation", "test")


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> str:
    """Return question, options and instruction; pictures are named ``<image N>``."""
    settings = lmms_eval_specific_kwargs or {}
    is_qwen, is_choice = settings.get("format") == QWEN, _is_choice(doc)
    kind = ("post_prompt" if is_qwen else "multiple_choice_prompt") if is_choice else "open_ended_prompt"
    instruction = settings.get(kind) or ""
    if is_qwen:
        return listed(doc["question"], doc, settings, instruction)
    shown = f"\n{option_lines(options(doc))}" if is_choice else ""
    return f"{doc['question']}{shown}\n\n{instruction}"


def doc_to_messages(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> list[dict[str, Any]]:
    """Return one user turn with each picture where the text names it; for Qwen3-VL all pictures first.

    A picture that is the only one is shown as often as the setting ``num_image`` says.
    """
    text = doc_to_text(doc, lmms_eval_specific_kwargs)
    places = PLACE.split(text)
    times = times_shown(lmms_eval_specific_kwargs) if len(places) == _ONE_PICTURE else 1
    if (lmms_eval_specific_kwargs or {}).get("format") == QWEN:
        content = [{"type": "image", "url": image} for image in doc_to_visual(doc) * times]
        return [{"role": "user", "content": [*content, {"type": "text", "text": text}]}]
    *before, last = places
    content = []
    for said, number in zip(before[::2], before[1::2], strict=True):
        if said.strip():
            content.append({"type": "text", "text": said.strip()})
        content += [{"type": "image", "url": picture(doc, number)}] * times
    return [{"role": "user", "content": [*content, {"type": "text", "text": last.strip()}]}]


def process_results(doc: Doc, results: Sequence[str]) -> dict[str, Any]:
    """Return the letters that the answers name and the reference answer; several answers are right if one of them is.

    Raises:
        ItemError: the id names no subject, or a question of multiple choice has no options.
    """
    parsed: list[Any] = chosen(doc, results) if _is_choice(doc) else [mmmu.candidates(answer) for answer in results]
    row = {
        "id": doc["id"],
        "subdomain": subject(doc["id"]),
        "question_type": doc["question_type"],
        "answer": doc["answer"],
        "parsed_pred": parsed,
    }
    row["correct"] = is_right(row)
    first = parsed[0][-1] if isinstance(parsed[0], list) else parsed[0]
    submission = {doc["id"]: str(first)}
    by_reference = row | {"correct": _is_choice(doc) and row["correct"]}
    return {"mmmu_acc": row, "mmmu_acc_reference": by_reference, "mmmu_acc_pass_at_k": row, "submission": submission}


def doc_to_judge(doc: Doc, results: Sequence[str], lmms_eval_specific_kwargs: Settings = None) -> list[dict[str, Any]]:
    """Ask whether the answer, that between its first tags ``<answer>`` where it has them, is right."""
    question = doc_to_text(doc)
    return [binary_judge.question(question, str(doc["answer"]), final(results[0]), lmms_eval_specific_kwargs)]


@depends_on(identity(binary_judge.TEXT))
def process_judged(
    doc: Doc,  # noqa: ARG001 - interface
    results: Sequence[str],  # noqa: ARG001 - interface
    verdicts: Mapping[str, Verdict],
) -> dict[str, Any]:
    """Score what the judge says, by the official reading of its reply and by the fixed one."""
    return binary_judge.scores(verdicts, "llm_as_judge_eval")


def aggregate_judged(results: Sequence[float], task: Any) -> Estimate:
    """Return the share of answers that the judge calls right, with a note on the judge's text."""
    return noted(mean([float(result) for result in results]), task, binary_judge.TEXT)


def final(answer: str) -> str:
    """Return the text between the first tags ``<answer>`` and ``</answer>``; the whole answer without them."""
    _, is_open, rest = answer.partition("<answer>")
    inside, is_closed, _ = rest.partition("</answer>")
    return inside.strip() if is_open and is_closed else answer


def subject(name: str) -> str:
    """Return the subject in the id ``SPLIT_SUBJECT_NUMBER``. Raises ``ItemError`` if it has another form."""
    split, _, rest = name.partition("_")
    found, _, number = rest.rpartition("_")
    if split not in SPLITS or not found or not number.isdecimal():
        raise ItemError(f"mmmu: column 'id' holds {name!r}: it must be SPLIT_SUBJECT_NUMBER with {', '.join(SPLITS)}")
    return found


def is_right(row: Row) -> bool:
    """Return whether one of the parsed answers is right."""
    if not _is_choice(row):
        answer = row["answer"]
        is_list = not isinstance(answer, str) or (answer.startswith("[") and answer.endswith("]"))
        gold = read_list({"answer": answer}, "answer") if is_list else [answer]
        return any(
            mmmu.is_right(mmmu.normalised(said) if isinstance(said, str) else said, gold) for said in row["parsed_pred"]
        )
    gold = row["answer"] if isinstance(row["answer"], list) else [row["answer"]]
    return any(said in gold for said in row["parsed_pred"])


def aggregate(results: Sequence[Row]) -> Estimate:
    """Return the share of right answers, also by domain and subject."""
    return accuracy([row["subdomain"] for row in results], [float(is_right(row)) for row in results])


def aggregate_reference(results: Sequence[Row]) -> Estimate:
    """Return the share of right answers by the reference, where an open answer is never right."""
    right = [float(_is_choice(row) and is_right(row)) for row in results]
    return accuracy([row["subdomain"] for row in results], right)


def write_submission(results: Sequence[Row], args: Any = None) -> Estimate:
    """Write the file of answers to the test split: one mapping from id to answer."""
    return written_json({name: said for one in results for name, said in one.items()}, SUBMISSION, args)


SUBMISSION = "mmmu_test_for_submission.json"


def _is_choice(doc: Doc) -> bool:
    return bool(doc["question_type"] == "multiple-choice")
