"""LongVideoBench: multiple choice about videos of up to an hour, here without their subtitles."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from lmms_eval.api.outcome import Estimate
from lmms_eval.errors import ItemError
from lmms_eval.tasks._task_utils.estimates import by, mean, rounded
from lmms_eval.tasks._task_utils.question import LETTERS, Doc, Settings, framed, option_lines
from lmms_eval.tasks._task_utils.submissions import written_json
from lmms_eval.tasks._task_utils.videos import MediaFolder
from lmms_eval.utils.answer_reading import guessed, note_reading

VIDEOS = MediaFolder(
    "datasets/longvideobench", "longvideobench/LongVideoBench", ("longvideobench_val_v", "longvideobench_test_v")
)
_OPTIONS = tuple(f"option{number}" for number in range(5))
_NO_OPTION = ("N/A", None)
_LEADS = (
    "The best answer is", "The correct answer is", "The answer is", "The answer", "The best option is",
    "The correct option is", "Best answer:", "Best option:",
)  # fmt: skip
_LETTER = re.compile("[ABCDE]")
_DECIMALS = 5


def doc_to_visual(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> list[str]:
    """Return the path of the video, wherever it is, or where it belongs."""
    return [VIDEOS.path(f"videos/{doc['video_path']}", settings=lmms_eval_specific_kwargs)]


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> str:
    """Return question and options in their frame."""
    options = option_lines(doc[name] for name in _OPTIONS if doc[name] not in _NO_OPTION)
    return framed(f"{doc['question']}\n{options}\n", lmms_eval_specific_kwargs)


def doc_to_target(doc: Doc) -> str:
    """Return the letter of the right option. Raises ``ItemError`` if there is no such option."""
    number = int(doc["correct_choice"])
    if number not in range(len(_OPTIONS)) or doc[_OPTIONS[number]] in _NO_OPTION or not _letters(doc):
        raise ItemError(f"longvideobench: column 'correct_choice' holds {number}: there is no such option")
    return LETTERS[number]


def _letters(doc: Doc) -> str:
    """The letters of the options before the first missing one."""
    return LETTERS[: sum(1 for _ in takewhile(lambda name: doc[name] not in _NO_OPTION, _OPTIONS))]


def letter(answer: str, letters: Sequence[str]) -> str:
    """Return the first capital from A to E of an answer, inside a word too; without one a letter is drawn."""
    text = answer.strip()
    for lead in _LEADS:
        text = text.replace(lead, "")
    found = _LETTER.search(text)
    if found is None:
        return guessed(letters, answer)
    note_reading("first capital", found[0])
    return found[0]


def process_results(doc: Doc, results: Sequence[str]) -> dict[str, Any]:
    """Return the letter of the answer with the columns that divide the questions."""
    gold = doc_to_target(doc)
    told = {name: doc[name] for name in ("id", "duration_group", "question_category", "video_id")}
    row = {**told, "answer": gold, "parsed_pred": letter(results[0], _letters(doc))}
    return {"lvb_acc": {**row, "score": _is_right(row)}, **answer_to_submit(doc, results)}


def answer_to_submit(doc: Doc, results: Sequence[str]) -> dict[str, Any]:
    """Return the answer as it is submitted, under the metric ``submission``."""
    return {"submission": {doc["id"]: results[0].strip()}}


def _is_right(row: Mapping[str, Any]) -> float:
    return float(row["parsed_pred"] == row["answer"])


def aggregate(results: Sequence[Mapping[str, Any]]) -> Estimate:
    """Return the share of right letters, also by length and by kind of question, to five decimals."""
    parts = {name: by(results, name, _is_right) for name in ("duration_group", "question_category")}
    clusters = [row.get("video_id") for row in results]
    made = mean([_is_right(row) for row in results], sub_scores=parts, clusters=clusters)
    return rounded(made, _DECIMALS)


def write_submission(answers: Sequence[Mapping[str, str]], args: Any) -> Estimate:
    """Write the answers by question for the organisers."""
    together = {name: text for answer in answers for name, text in answer.items()}
    return written_json(together, "longvideobench_test_for_submission.json", args)
