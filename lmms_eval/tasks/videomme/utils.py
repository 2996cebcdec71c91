"""Video-MME: multiple choice about videos of three lengths, with or without their subtitles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from lmms_eval.api.outcome import Estimate
from lmms_eval.errors import ItemError, MediaError
from lmms_eval.metrics.answers import extract_mcq_answer
from lmms_eval.tasks._task_utils.estimates import by, mean
from lmms_eval.tasks._task_utils.question import Doc, Settings
from lmms_eval.tasks._task_utils.videos import MediaFolder

ALL_FRAMES = -1
_OPENING = re.compile(r'<font color="white" size=".72c">')
_CLOSING = "</font>"
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_TIME = r"(\d{1,6}):(\d{1,6}):(\d{1,6}[,.]\d{1,6})"  # bounded, so that a row of digits is read in linear time
_TIMES = re.compile(rf"{_TIME}\s*+-->\s*+{_TIME}")


class TextBlock(Struct, frozen=True):
    """Texts that are shown together."""

    start: float
    """Seconds."""
    end: float
    """Seconds; not shown any more."""
    lines: tuple[str, ...]


def read(text: str) -> list[TextBlock]:
    """Read a file in the form SubRip, in order of time. Blocks without times are skipped.

    Of files with the authors' font tags the tagged texts alone count; of others the lines as they are.
    """
    is_tagged = any(True for line in text.splitlines() for _ in _tagged(line))
    return sorted(_blocks(text, is_tagged), key=lambda block: block.start)


def _blocks(text: str, is_tagged: bool) -> Iterator[TextBlock]:
    for part in _BLANK_LINE.split(text.replace("\r\n", "\n")):
        lines = part.strip().split("\n")
        place, times = next(((n, found) for n, line in enumerate(lines) if (found := _TIMES.search(line))), (0, None))
        if times is None:
            continue
        shown_lines = [line.strip() for line in lines[place + 1 :]]
        texts = _tagged(" ".join(shown_lines)) if is_tagged else list(filter(None, shown_lines))
        yield TextBlock(_seconds(*times.groups()[:3]), _seconds(*times.groups()[3:]), tuple(texts))


def _tagged(line: str) -> Iterator[str]:
    """The texts in the authors' font tags."""
    opening = _OPENING.search(line)
    while opening is not None:
        end = line.find(_CLOSING, opening.end())
        if end < 0:
            return
        yield line[opening.end() : end]
        opening = _OPENING.search(line, end)


def _seconds(hours: str, minutes: str, seconds: str) -> float:
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds.replace(",", "."))


def shown(blocks: Sequence[TextBlock], frames: int, rate: float, sampled: int) -> list[str]:
    """Return the first text of each block that is on the screen in a sampled frame.

    Args:
        blocks: in order of time.
        frames: number of frames of the video.
        rate: frames per second.
        sampled: number of frames that are taken at equal distances, the first and the last among them, or
            ``ALL_FRAMES``.
    """
    import numpy as np

    taken = np.arange(frames) if sampled == ALL_FRAMES else np.linspace(0, frames - 1, sampled).astype(int)
    found = []
    for block in blocks:
        first, after = np.searchsorted(taken, [int(block.start * rate), int(block.end * rate)])
        if block.lines and first < after:
            found.append(block.lines[0])
    return found


VIDEOS = MediaFolder(
    "videomme",
    "lmms-eval/Video-MME",
    ("videomme", "videomme_w_subtitle", "videomme_long", "videomme_long_w_subtitle"),
)
LETTERS = ("A", "B", "C", "D")
DURATIONS = ("short", "medium", "long")
DOMAINS = (
    "Knowledge", "Film & Television", "Sports Competition", "Artistic Performance", "Life Record", "Multilingual",
)  # fmt: skip
DIVISIONS = ("duration", "category", "sub_category", "task_category")
_TASK = (
    "Select the best answer to the following multiple-choice question based on the video and the subtitles. "
    "Respond with only the letter (A, B, C, or D) of the correct option."
)


def doc_to_visual(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> list[str]:
    """Return the path of the video. Raises ``MediaError`` if it is not there."""
    names = [f"data/{doc['videoID']}.{ending}" for ending in ("mp4", "MP4", "mkv")]
    return [VIDEOS.find(*names, settings=lmms_eval_specific_kwargs)]


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> str:
    """Return the authors' instruction, which names subtitles in any case, with question and options."""
    settings = lmms_eval_specific_kwargs or {}
    return _question(doc, settings, settings.get("post_prompt") or "")


def doc_to_text_with_subtitles(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> str:
    """Return the subtitles of the sampled frames before instruction, question and options.

    Raises:
        MediaError: there are subtitles, but no video whose frames select them.
    """
    settings = lmms_eval_specific_kwargs or {}
    subtitles = _subtitles(doc, settings)
    return f"This video's subtitles are listed below: \n{subtitles}\n{_question(doc, settings, 'The best answer is:')}"


def _question(doc: Doc, settings: Mapping[str, Any], end: str) -> str:
    options = "\n".join(doc["options"])
    if settings.get("format") == "qwen3_vl":
        return f"{settings['pre_prompt']}{doc['question']}\nOptions:\n{options}\n{settings['post_prompt']}"
    return f"{_TASK}\n{doc['question']}\n{options}\n{end}"


def _subtitles(doc: Doc, settings: Mapping[str, Any]) -> str:
    file = VIDEOS.look_up(f"subtitle/{doc['videoID']}.srt", settings=settings)
    if file is None:
        return "No subtitles available"
    text = file.read_text(encoding="utf-8-sig", errors="replace")
    if settings.get("gemini_api_flag") == "full subtitle":
        return "\n".join(line for block in read(text) for line in block.lines)
    frames, rate = _frames(*doc_to_visual(doc, settings))
    return "\n".join(shown(read(text), frames, rate, int(settings.get("frame_num", ALL_FRAMES))))


@lru_cache(maxsize=64)  # questions about one video are adjacent
def _frames(path: str) -> tuple[int, float]:
    """Number of frames, and frames per second."""
    from lmms_eval.media import probe

    info = probe(path)
    if not info.fps:
        raise MediaError(f"{path} does not state its frames per second, which choose subtitles")
    return info.frames, info.fps


def long_videos(dataset: Any) -> Any:
    """Return the questions about videos of 30 to 60 minutes."""
    return dataset.filter(lambda duration: duration == "long", input_columns=["duration"])


def process_results(doc: Doc, results: Sequence[str]) -> dict[str, Any]:
    """Score the letter that the answer names 1 or 0, with the columns that divide the questions.

    Raises:
        ItemError: the reference answer is not one of the four letters.
    """
    if doc["answer"] not in LETTERS:
        raise ItemError(f"videomme: column 'answer' holds {doc['answer']!r}: it must be A, B, C or D")
    answer = extract_mcq_answer(results[0], LETTERS)
    return {
        "videomme_perception_score": {
            "question_id": doc["question_id"],
            "duration": doc["duration"],
            "category": doc["domain"],
            "sub_category": doc["sub_category"],
            "task_category": doc["task_type"],
            "pred_answer": answer,
            "answer": doc["answer"],
            "score": float(answer == doc["answer"]),
            "videoID": doc["videoID"],
        }
    }


def aggregate(results: Sequence[Mapping[str, Any]]) -> Estimate:
    """Return the percentage of right answers, also by length, domain, sub-category and kind of question."""
    parts = {name: by(results, name, _is_right, 100) for name in DIVISIONS}
    unknown = sum(row["duration"] not in DURATIONS or row["category"] not in DOMAINS for row in results)
    notes = [f"unknown_categories: {unknown} of {len(results)} questions, counted, with rows of their own"]
    clusters = [row.get("videoID") for row in results]
    return mean([_is_right(row) for row in results], 100, parts, clusters, notes if unknown else ())


def _is_right(row: Mapping[str, Any]) -> float:
    return float(row["pred_answer"] == row["answer"])
