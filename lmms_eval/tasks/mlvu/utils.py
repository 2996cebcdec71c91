"""MLVU: multiple choice about long videos, in seven types of task (nine in the test split)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.outcome import Estimate
from lmms_eval.errors import ItemError
from lmms_eval.metrics.answers import extract_mcq_answer
from lmms_eval.tasks._task_utils.estimates import by, over_parts
from lmms_eval.tasks._task_utils.question import LETTERS, Doc, Settings, read_list
from lmms_eval.tasks._task_utils.videos import MediaFolder

DEV = MediaFolder("mlvu", "sy1998/MLVU_dev", ("mlvu_dev",))
TEST = MediaFolder("mlvu_test", "sy1998/MLVU_Test", ("mlvu_test",))
DEV_TYPES = ("anomaly_reco", "count", "ego", "needle", "order", "plotQA", "topic_reasoning")
TEST_TYPES = (
    "anomaly_reco", "count", "ego", "needleQA", "order", "plotQA", "sportsQA", "topic_reasoning", "tutorialQA",
)  # fmt: skip
CHOICES = ("A", "B", "C", "D")
METRIC = "mlvu_percetion_score"
"""As the family writes it."""


def doc_to_visual(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> list[str]:
    """Return the path of the video of the development split. Raises ``MediaError`` if it is not there."""
    return [DEV.find(doc["video_name"], settings=lmms_eval_specific_kwargs)]


def doc_to_visual_test(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> list[str]:
    """Return the path of the video of the test split. Raises ``MediaError`` if it is not there."""
    return [TEST.find(doc["video_name"], settings=lmms_eval_specific_kwargs)]


def process_results(doc: Doc, results: Sequence[str]) -> dict[str, Any]:
    """Return the letter that the answer names and the right one; the fixed metric knows letters beyond D.

    Raises:
        ItemError: ``answer`` or ``task_type`` is not a text.
    """
    for column in ("answer", "task_type"):
        if not isinstance(doc[column], str):
            raise ItemError(
                f"mlvu: column {column!r} holds {doc[column]!r:.80} ({type(doc[column]).__name__}), no text"
            )
    try:
        count = len(read_list(doc, "candidates"))
    except (ItemError, KeyError):  # the rule does not read the column
        count = 0
    found = {METRIC: CHOICES, "mlvu_perception_score": CHOICES, f"{METRIC}_fixed": tuple(LETTERS[:count]) or CHOICES}
    return {name: _row(doc, extract_mcq_answer(results[0], letters)) for name, letters in found.items()}


def _row(doc: Doc, said: str) -> dict[str, Any]:
    return {
        "question_id": doc["question"],
        "task_type": doc["task_type"],
        "pred_answer": said,
        "answer": doc["answer"],
        "score": float(said == doc["answer"]),
    }


def aggregate(results: Sequence[Mapping[str, Any]], types: Sequence[str]) -> Estimate:
    """Return the plain mean, in percent, of the shares of right answers of the types that have documents."""
    known = [result for result in results if result["task_type"] in types]
    parts = by(known, "task_type", lambda result: result["pred_answer"] == result["answer"], 100.0)
    notes = []
    if absent := [name for name in types if name not in parts]:
        notes.append(f"absent_types: {len(absent)} types have no documents and do not count: {', '.join(absent)}")
    if unknown := len(results) - len(known):
        others = sorted({str(result["task_type"]) for result in results} - set(types))
        notes.append(f"unknown_types: {unknown} documents of other types do not count: {', '.join(others)}")
    return over_parts(parts, "task_type", notes=notes)


def aggregate_dev(results: Sequence[Mapping[str, Any]]) -> Estimate:
    """Aggregate the development split."""
    return aggregate(results, DEV_TYPES)


def aggregate_test(results: Sequence[Mapping[str, Any]]) -> Estimate:
    """Aggregate the test split."""
    return aggregate(results, TEST_TYPES)
