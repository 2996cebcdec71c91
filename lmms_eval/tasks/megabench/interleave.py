"""The prompt as the benchmark's authors send it: text pieces and media in their places, videos as marked frames.

The task option ``interleave: true`` (``lmms_eval_specific_kwargs``) selects it. Budgets are the authors':
``max_images`` a call, ``demo_video_frames`` of them for the demonstration.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lmms_eval.errors import MediaError
from lmms_eval.tasks._task_utils.pictures import image_part, open_image
from lmms_eval.tasks.megabench.data import QueryRow, is_video
from lmms_eval.tasks.megabench.prompts import MediaAccess, split_segment

if TYPE_CHECKING:
    pass

FRAMES_START, FRAMES_END = "<video frames start>", "<video frames end>"


class PictureBudget(Struct, frozen=True):
    """Limits on the pictures of a call (defaults: the authors' GPT-4o settings)."""

    max_images: int = 64
    demo_video_frames: int = 8
    """Frames of all videos of the demonstration together; also the most pictures that it may have."""
    max_side: int | None = None
    """Pictures and frames are shrunk until the longer side is at most this many pixels (the authors: 1000)."""


def interleaved_messages(row: QueryRow, media: MediaAccess, budget: PictureBudget) -> list[dict[str, Any]]:
    """Return one user turn with every picture at its placeholder; text is stripped, empty pieces are dropped.

    Raises:
        DataError: placeholders and media do not match.
        MediaError: a file cannot be read, or the budget does not allow the row.
    """
    demo_steps, query_steps = _frame_steps(row, media, budget)
    parts: list[dict[str, Any]] = []
    for segment in row.segments:
        demo, shown = segment is row.example, 0
        for text, path in split_segment(row, segment):
            if path is None:
                parts.extend([{"type": "text", "text": text.strip()}] if text.strip() else [])
            elif is_video(path):
                parts.extend(_video_parts(path, media, (demo_steps if demo else query_steps)[path], budget))
            elif not demo or shown < budget.demo_video_frames:
                parts.append(_picture(path, media, budget))
                shown += 1
    images = sum(part["type"] == "image" for part in parts)
    if images > budget.max_images:
        raise _too_many(row, f"has {images} pictures", budget)
    return [{"role": "user", "content": parts}]


def _frame_steps(
    row: QueryRow, media: MediaAccess, budget: PictureBudget
) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Return the distances of the frames that are taken by path, in the demonstration and in the rest.

    By the authors' rule, the demonstration's videos share ``demo_video_frames``; the others share the rest, at no more
    than one frame a second.
    """
    demo_videos = [path for path in row.example.media if is_video(path)]
    others = [path for path in row.description.media + row.query.media if is_video(path)]
    if not demo_videos and not others:
        return {}, {}
    from lmms_eval.media import probe

    infos = {path: probe(media.path(path), counts=True) for path in dict.fromkeys(demo_videos + others)}
    demo: dict[str, int] = {}
    if demo_videos:
        allowed = math.ceil(budget.demo_video_frames / len(demo_videos))
        demo = {path: math.ceil(infos[path].frames / allowed) for path in demo_videos}
    if not others:
        return demo, {}
    demo_images = min(len(row.example.media) - len(demo_videos), budget.demo_video_frames)
    stills = demo_images + len(row.description.media + row.query.media) - len(others)
    shown = sum(math.ceil(infos[path].frames / demo[path]) for path in demo_videos)
    left = math.floor((budget.max_images - stills - shown) / len(others))
    if left <= 0:
        raise _too_many(row, "leaves no frame for its videos", budget)
    query = {path: max(math.ceil(infos[path].frames / left), math.ceil(infos[path].fps)) for path in others}
    return demo, query


def _video_parts(path: str, media: MediaAccess, step: int, budget: PictureBudget) -> list[dict[str, Any]]:
    from lmms_eval.media import Sampling, read_frames, shrink

    images = read_frames(media.path(path), Sampling(step=max(1, step))).images()
    shown = [{"type": "image", "url": shrink(image, max_side=budget.max_side)} for image in images]
    return [{"type": "text", "text": FRAMES_START}, *shown, {"type": "text", "text": FRAMES_END}]


def _picture(path: str, media: MediaAccess, budget: PictureBudget) -> dict[str, Any]:
    from lmms_eval.media import header, shrink

    file = media.path(path)
    found = header(file)
    if budget.max_side is None or max(found.width, found.height) <= budget.max_side:
        return image_part(file)
    return {"type": "image", "url": shrink(open_image(file), max_side=budget.max_side)}


def _too_many(row: QueryRow, problem: str, budget: PictureBudget) -> MediaError:
    return MediaError(
        f"MEGA-Bench row {row.id} of task {row.task_name} {problem}; the budget is {budget.max_images} pictures a call "
        "(max_images in lmms_eval_specific_kwargs)"
    )
