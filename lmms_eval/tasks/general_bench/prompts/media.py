"""Questions of tasks with media: the item's own prompt, its media, and the required form of the answer.

The wording is our own. Media come first, in their order. ``replies`` reads the replies in each of these forms.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from lmms_eval.media.image import header
from lmms_eval.media.video import probe, uniform_indices
from lmms_eval.tasks.general_bench.facts import find_task
from lmms_eval.tasks.general_bench.items import Item, MediaInput
from lmms_eval.tasks.general_bench.prompts.forms import labels_of, listed, text_demand, text_tokens
from lmms_eval.tasks.general_bench.prompts.forms import max_new_tokens as form_tokens
from lmms_eval.tasks.general_bench.readers.pictures import PICTURE_SUFFIXES, files_of


def in_frames(medium: MediaInput) -> bool:
    """Return whether the medium is a video given as pictures: a list of files, or a folder."""
    return medium.kind == "frames" or (medium.kind == "video" and medium.paths[0].is_dir())


def frame_files(medium: MediaInput) -> tuple[Path, ...]:
    """Return the frames in order: the files as given, or the pictures of one folder in natural order.

    Raises ``MediaError`` if the folder cannot be read, or holds no picture.
    """
    if len(medium.paths) != 1 or not medium.paths[0].is_dir():
        return medium.paths
    return tuple(files_of(medium.paths[0], PICTURE_SUFFIXES))


def shown(total: int, max_frames: int) -> list[int]:
    """Return the numbers of the frames that are shown: all, or evenly spaced ones from first to last, rounded down."""
    return uniform_indices(total, min(total, max_frames)) if total else []


MAX_FRAMES = 64
"""Most frames of a video in a question, as in the reference implementation."""
_MARK = re.compile(r"<(?:image|video|audio|speech|points?|pointcloud)>[ \t]*\n?", re.IGNORECASE)
"""Placeholder for a medium in some prompts. Here media come before the text."""
_REMARK = re.compile(r"\([^)]*[一-鿿][^)]*\)")
"""Chinese remarks on the data in names of the workbook."""
_KEY_POINTS = find_task("Person Keypoint Detection")


class Question(Struct, frozen=True):
    """A question: texts and media in their order."""

    parts: tuple[str | MediaInput, ...]
    max_new_tokens: int
    max_frames: int = MAX_FRAMES
    """Most frames of each video given as frames."""
    numbers_frames: bool = False
    """Whether the answer refers to frames. Each is then shown with its number, and so are those of video files."""


def question(item: Item, candidates: Sequence[str] = (), max_frames: int = MAX_FRAMES) -> Question:
    """Return the question of an item.

    Args:
        item: of a task with media.
        candidates: the closed set of its task's answers (``forms.candidate_answers``), sorted; or labels of boxes.
        max_frames: at most as many frames of a video are shown.

    Raises:
        MediaError: a picture or video whose size or length the question states is missing or unreadable.
        ValueError: ``max_frames`` is not positive.
    """
    if max_frames < 1:
        raise ValueError(f"at least 1 frame must be shown, not {max_frames}")
    prompt = _MARK.sub("", item.prompt).strip() or f"Task: {' '.join(_REMARK.sub('', item.facts.name).split())}."
    demand = _demand(item, candidates, max_frames)
    tokens = max_new_tokens(item, candidates)
    text = f"{prompt}\n{demand}" if demand else prompt
    return Question((*item.media, text), tokens, max_frames, item.form in ("tube", "masks"))


def max_new_tokens(item: Item, candidates: Sequence[str] = ()) -> int:
    """Return the most tokens of an answer."""
    return text_tokens(item.facts, candidates) if item.form == "text" else form_tokens(item.form)


def frame_count(item: Item) -> int | None:
    """Count the frames that the answer about a video refers to, or return ``None`` if the number is unknown.

    Raises ``MediaError`` if the video is missing or unreadable.
    """
    stated = item.raw.get("frame_count")
    if isinstance(stated, int) and not isinstance(stated, bool) and stated > 0:
        return stated
    for medium in item.media:
        if in_frames(medium):
            return len(frame_files(medium))
        if medium.kind == "video":
            return probe(str(medium.paths[0]), counts=True).frames
    return None


def picture_size(item: Item) -> tuple[int, int] | None:
    """Return width and height of the first picture or video, or ``None``. Raises ``MediaError`` if it is unreadable."""
    for medium in item.media:
        if medium.kind == "image" or in_frames(medium):
            found = header(str(frame_files(medium)[0]))
            return found.width, found.height
        if medium.kind == "video":
            info = probe(str(medium.paths[0]))
            return info.width, info.height
    return None


def _demand(item: Item, candidates: Sequence[str], max_frames: int) -> str:
    """Return the required form of the answer, or an empty text if there is nothing to say."""
    match item.form:
        case "text":
            return text_demand(item.facts, candidates, item.prompt)
        case "number":
            if item.facts.metric == "average_precision":
                return "Answer only with the probability, a number from 0 to 1, that what is shown has a defect."
            return "Answer with digits only."
        case "boxes":
            labelled = item.reference is None or bool(candidates) or bool(labels_of(item.reference))
            entry = '[x, y, width, height, "label"]' if labelled else "[x, y, width, height]"
            return (
                f"Answer only with a JSON list of boxes [{entry}, ...], the surest first: {_corner(item)}; [] if there "
                f"is none.{_labels(candidates)}"
            )
        case "tube":
            return _frame_demand(item, max_frames, "[x, y, width, height]", _corner(item))
        case "mask":
            return (
                "Answer only with a JSON list of the polygons that outline what is asked for, with as few corners "
                f"as it takes: [[x1, y1, x2, y2, ...], ...], {_pixels(item)}; [] if it is not there."
            )
        case "masks":
            polygons = (
                "a list of polygons [[x1, y1, x2, y2, ...], ...] of few corners that outline what is asked for, "
                f"{_pixels(item)}"
            )
            return _frame_demand(item, max_frames, "[polygon, ...]", polygons)
        case "instances":
            return _instance_demand(item, candidates)
        case "triplets":
            return (
                'Answer only with a JSON list of at most 50 triplets [["subject", "predicate", "object"], ...], the '
                "surest first."
            )
        case _:
            return ""


def _instance_demand(item: Item, candidates: Sequence[str]) -> str:
    start = "Answer only with a JSON list, the surest first: "
    if item.facts is _KEY_POINTS:
        return (
            f'{start}[{{"keypoints": [[x, y], ...], "score": 0.9}}, ...], an entry for each person: the 17 key points '
            f"of COCO in their order, {_pixels(item)}; [] if there is none."
        )
    return (
        f'{start}[{{"mask": [[x1, y1, x2, y2, ...], ...], "label": "...", "score": 0.9}}, ...], an entry for each '
        f"object: polygons of few corners that outline it, {_pixels(item)}; [] if there is none.{_labels(candidates)}"
    )


def _frame_demand(item: Item, max_frames: int, entry: str, meaning: str) -> str:
    """Ask for an entry for each frame, or, if not all frames are shown, for those shown, with their numbers."""
    total = frame_count(item)
    if total is None or total <= max_frames:
        each = "each frame" if total is None else f"each of the {total} frames"
        return (
            f"Find it in the frames. Answer only with a JSON list with an entry for {each}, in order: {entry}, "
            f"{meaning}; null where it is absent."
        )
    return (
        f"These are some frames of {total}, with their numbers (from 0). Find it in them. Answer only with a JSON list "
        f"with an entry [number, {entry}] for each frame shown: {meaning}; [number, null] where it is absent. Frames "
        "in between follow from these."
    )


def _corner(item: Item) -> str:
    return f"x, y is the top left corner of a box, {_pixels(item)}"


def _pixels(item: Item) -> str:
    size = picture_size(item)
    return "in pixels" if size is None else f"in pixels of the picture of {size[0]}x{size[1]}"


def _labels(candidates: Sequence[str]) -> str:
    return f" The labels are: {listed(candidates)}." if candidates else ""
