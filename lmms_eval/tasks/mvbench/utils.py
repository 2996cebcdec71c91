"""MVBench: 20 tasks of multiple choice about short videos, 200 questions each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.outcome import Estimate
from lmms_eval.errors import ItemError
from lmms_eval.metrics.vqa import without_punctuation
from lmms_eval.tasks._task_utils.estimates import mean
from lmms_eval.tasks._task_utils.question import LETTERS, Doc
from lmms_eval.tasks._task_utils.videos import MediaFolder

_OPTION = re.compile(r"([A-E])\.\s*(.+)$", re.IGNORECASE)
_LETTER = re.compile(r"\b([A-E])\b", re.IGNORECASE)
_COMMA_IN_NUMBER = re.compile(r"\d,\d")
_FULL_STOPS_REMOVED = 32
_IN_ARCHIVE = {"clevrer": "data0613", "star": "data0613"}
"""Folders that some copies of the archives hold below another one."""


def doc_to_visual(doc: Doc, lmms_eval_specific_kwargs: Mapping[str, Any]) -> list[str]:
    """Return the path of the video, wherever it is, or where it belongs."""
    folder, sub_task = lmms_eval_specific_kwargs["folder"], lmms_eval_specific_kwargs["sub_task"]
    videos = MediaFolder("mvbench_video", "OpenGVLab/MVBench", (f"mvbench_{sub_task}", "mvbench"))
    above = _IN_ARCHIVE.get(folder.split("/")[0])
    names = [f"{folder}/{doc['video']}", *([f"{above}/{folder}/{doc['video']}"] if above else ())]
    return [videos.path(*names, settings=lmms_eval_specific_kwargs)]


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Mapping[str, Any]) -> str:
    """Return the question and a line for each candidate."""
    options = "".join(f"({letter}) {text}\n" for letter, text in zip(LETTERS, doc["candidates"], strict=False))
    return f"Question:{doc['question']}\nOption:\n{options}{lmms_eval_specific_kwargs.get('post_prompt') or ''}"


def doc_to_target(doc: Doc) -> str:
    """Return the letter of the right candidate. Raises ``ItemError`` if the reference answer is not a candidate."""
    if doc["answer"] not in doc["candidates"]:
        raise ItemError(
            f"mvbench: column 'answer' holds {doc['answer']!r}, which is not one of the candidates: {doc['candidates']}"
        )
    return LETTERS[doc["candidates"].index(doc["answer"])]


def letter(answer: str) -> str:
    """Read an answer as the letter that begins it as an option (``b. text``), else as the first letter that is
    alone, articles included, else as its text."""
    if begins := _OPTION.match(answer.strip()):
        return begins[1].upper()
    words = answer.replace("\n", " ").replace("\t", " ").strip()
    text = without_punctuation(words, _FULL_STOPS_REMOVED, _COMMA_IN_NUMBER).strip("'\"()").strip().lower()
    alone = _LETTER.search(text)
    return alone[1].upper() if alone else text


def process_results(doc: Doc, results: Sequence[str]) -> dict[str, Any]:
    """Score the letter of the answer 1 or 0."""
    gold = doc_to_target(doc)
    score = int(letter(results[0]) == gold)
    return {"mvbench_accuracy": {"pred_answer": results[0], "gt_answer": gold, "score": score, "video": doc["video"]}}


def aggregate(results: Sequence[Mapping[str, Any]]) -> Estimate:
    """Return the percentage of right answers; empty ones count as wrong."""
    return mean([row["score"] for row in results], 100, clusters=[row.get("video") for row in results])
