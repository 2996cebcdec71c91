"""NExT-QA, multiple choice: why, how, when and what in short videos of daily life."""

from __future__ import annotations

from collections.abc import Sequence

from lmms_eval.errors import ItemError
from lmms_eval.metrics.mmmu import mmmu_letter
from lmms_eval.tasks._task_utils.question import LETTERS, Doc, Settings, option_lines
from lmms_eval.tasks._task_utils.videos import MediaFolder

VIDEOS = MediaFolder("nextqa", "lmms-eval/NExTQA", ("nextqa_mc_test",))
OPTIONS = 5


def doc_to_visual(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> list[str]:
    """Return the path of the video. Raises ``MediaError`` if it is not there."""
    names = [f"NExTVideo/{doc['video']}.{ending}" for ending in ("mp4", "MP4")]
    return [VIDEOS.find(*names, settings=lmms_eval_specific_kwargs)]


def doc_to_text(doc: Doc) -> str:
    """Return question and options, without an instruction."""
    return f"{doc['question'].strip()}\n{option_lines(_options(doc))}"


def doc_to_gold(doc: Doc) -> str:
    """Return the letter of the right option. Raises ``ItemError`` if there is no such option."""
    text = str(doc["answer"])
    if not text.isdecimal() or int(text) >= OPTIONS:
        raise ItemError(f"nextqa: column 'answer' holds {text!r}: it must be a number from 0 to {OPTIONS - 1}")
    return LETTERS[int(text)]


def process_results(doc: Doc, results: Sequence[str]) -> dict[str, bool]:
    """Compare the letter that the answer names, or one drawn for the question, with the right one."""
    options = dict(zip(LETTERS, _options(doc), strict=False))
    said = mmmu_letter(results[0], options, f"{doc['video']}:{doc['qid']}")
    return {"exact_match": said == doc_to_gold(doc)}


def _options(doc: Doc) -> list[str]:
    return [str(doc[f"a{number}"]).strip() for number in range(OPTIONS)]
