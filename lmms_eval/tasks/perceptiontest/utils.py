"""Perception Test, validation split: multiple choice about what is seen in short videos."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.outcome import Estimate
from lmms_eval.errors import ItemError
from lmms_eval.tasks._task_utils.estimates import by, mean
from lmms_eval.tasks._task_utils.question import LETTERS, Doc, Settings, framed, option_lines
from lmms_eval.tasks._task_utils.videos import MediaFolder

VIDEOS = MediaFolder(
    "perceptiontest_val", "lmms-eval/PerceptionTest_Val", ("perceptiontest_val_mc", "perceptiontest_val_mcppl")
)
_LETTER = re.compile(r"\b([A-D])\b")
_INSTRUCTION = "Answer with the option's letter from the given choices directly."
UNREAD = -1


def doc_to_visual(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> list[str]:
    """Return the path of the video. Raises ``MediaError`` if it is not there."""
    names = [f"videos/{doc['video_name']}.{ending}" for ending in ("mp4", "MP4")]
    return [VIDEOS.find(*names, settings=lmms_eval_specific_kwargs)]


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> str:
    """Return question, options and instruction in their frame."""
    return framed(f"{doc['question']}\n{option_lines(doc['options'])}\n{_INSTRUCTION}", lmms_eval_specific_kwargs)


def doc_to_target(doc: Doc) -> int:
    """Return the number of the right option. Raises ``ItemError`` if there is no such option."""
    text = str(doc["answer_id"])
    if not text.isdecimal() or int(text) >= len(doc["options"]):
        raise ItemError(f"perceptiontest: column 'answer_id' holds {text!r}: there is no such option")
    return int(text)


def doc_to_gold(doc: Doc) -> str:
    """Return the letter of the right option."""
    return LETTERS[doc_to_target(doc)]


def process_results(doc: Doc, results: Sequence[str]) -> dict[str, Any]:
    """Score the first capital letter from A to D that stands alone."""
    found = _LETTER.search(results[0])
    scored = _scored(doc, LETTERS.index(found[1]) if found else UNREAD)
    scored["accuracy"]["extracted"] = found[1] if found else ""
    return scored


def process_likelihoods(doc: Doc, results: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    """Score the option that is likeliest as an answer; ``results`` holds loss and greediness of each."""
    losses = [loss for loss, _ in results]
    return _scored(doc, losses.index(min(losses)))


def _scored(doc: Doc, chosen: int) -> dict[str, Any]:
    told = {name: doc[name] for name in ("video_name", "question", "answer_id", "area", "reasoning")}
    return {"accuracy": {**told, "pred_id": chosen, "correct": int(chosen == doc_to_target(doc))}}


def aggregate(results: Sequence[Mapping[str, Any]]) -> Estimate:
    """Return the share of right options, also by area and kind of reasoning."""
    rows = [row for row in results if "area" in row]
    parts = {name: by(rows, name, lambda row: row["correct"]) for name in ("area", "reasoning") if rows}
    clusters = [row.get("video_name") for row in results]
    return mean([row["correct"] for row in results], sub_scores=parts, clusters=clusters)
