"""Makes a model's input from a row: the prompt's text, its pictures and videos, and chat messages.

Three kinds of rows: pictures only (opened in order), videos only (paths, the model samples them), and both (sampled
frames among the pictures; each placeholder in the text is replaced by one ``<image>`` a frame).

With the task option ``interleave``, the prompt is as the benchmark's authors send it: text pieces and media in their
places, videos as marked frames. The budgets are the authors': ``max_images`` a call, ``demo_video_frames`` of them for
the demonstration.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lmms_eval.errors import DataError, MediaError
from lmms_eval.tasks._task_utils.pictures import image_part, open_image
from lmms_eval.tasks.megabench.data import PromptSegment, QueryRow, is_video
from lmms_eval.tasks.megabench.settings import MediaAccess, Settings

if TYPE_CHECKING:
    from lmms_eval.media import VideoFrames
    from lmms_eval.media.reference import Identity

IMAGE_TOKEN = "<image>"
VIDEO_START, VIDEO_END = "[video start]", "[video end]"
FRAMES_START, FRAMES_END = "<video frames start>", "<video frames end>"
_PLACEHOLDER = re.compile(r"(<image>|<video>)")


def prompt_text(row: QueryRow, media: MediaAccess | None) -> str:
    """Join the three texts by newlines, as the reference harness does.

    Texts keep their placeholders, except in a mixed row, which needs its media.
    An empty demonstration leaves an empty line.

    Raises:
        DataError: placeholders and media of a mixed row do not match.
        MediaError: a video of a mixed row cannot be read.
    """
    if row.kind == "mixed" and media is not None:
        return "\n".join(_rebuilt(row, segment, media) for segment in row.segments)
    return "\n".join((row.description.text, row.example.text, row.query.text))


def visuals(row: QueryRow, media: MediaAccess) -> list[Any]:
    """Open pictures (RGB), paths of videos, or for mixed rows pictures and frames, in the order of the prompt.

    Raises ``MediaError`` if a file is missing or cannot be read.
    """
    if row.kind == "video":
        return [video_path(name, media) for name in row.media]
    found: list[Any] = []
    for name in row.media:
        found.extend(frames(name, media).images() if is_video(name) else [open_image(media.path(name))])
    return found


def messages(row: QueryRow, media: MediaAccess) -> list[dict[str, Any]]:
    """Make one user turn: all visuals, then the whole text as one part, with placeholders.

    A picture that needs no transform is given as a path, so that an API back end can send the file as it is.

    Raises:
        DataError, MediaError: as :func:`prompt_text` and :func:`visuals`.
    """
    parts: list[dict[str, Any]] = []
    for name in row.media:
        if row.kind == "image" or not is_video(name):
            parts.append(image_part(media.path(name)))
        elif row.kind == "mixed":
            parts.extend({"type": "image", "url": image} for image in frames(name, media).images())
        else:
            parts.append({"type": "video", "url": video_path(name, media)})
    parts.append({"type": "text", "text": prompt_text(row, media)})
    return [{"role": "user", "content": parts}]


def video_path(name: str, media: MediaAccess) -> str:
    """Absolute path of a video that exists. Raises ``MediaError`` if there is no such file."""
    from lmms_eval.media import resolve

    return str(resolve(media.path(name)).path)


def frames(name: str, media: MediaAccess) -> VideoFrames:
    """All frames of a video up to ``max_frames``, else that many evenly spaced ones; unreadable ones left out.

    Raises ``MediaError`` if the video is missing or has no frame that can be read.
    """
    from lmms_eval.media import Sampling, read_frames

    return read_frames(media.path(name), Sampling(count=media.max_frames))


def split_segment(row: QueryRow, segment: PromptSegment) -> list[tuple[str, str | None]]:
    """The text of a segment cut at its placeholders: ``(text, None)`` and ``(placeholder, path)`` in order.

    Raises ``DataError`` if there are more or fewer placeholders than media.
    """
    pieces = _PLACEHOLDER.split(segment.text)
    tokens = len(pieces) // 2
    if tokens != len(segment.media):
        raise DataError(
            f"MEGA-Bench row {row.id} of task {row.task_name}: a text has {tokens} placeholders "
            f"for {len(segment.media)} media files"
        )
    paths = iter(segment.media)
    return [(piece, next(paths) if number % 2 else None) for number, piece in enumerate(pieces)]


def _rebuilt(row: QueryRow, segment: PromptSegment, media: MediaAccess) -> str:
    pieces: list[str] = []
    for text, path in split_segment(row, segment):
        if path is not None:
            count = frame_count(path, media) if is_video(path) else 1
            pieces.append(IMAGE_TOKEN if count == 1 else f"{VIDEO_START}{IMAGE_TOKEN * count}{VIDEO_END}")
        elif text.strip():
            pieces.append(text.strip())
    return " ".join(pieces)


def frame_count(name: str, media: MediaAccess) -> int:
    """Number of frames that :func:`frames` gives; the video is decoded for it once in a process."""
    from lmms_eval.media import resolve
    from lmms_eval.media.reference import identity

    key = (identity(resolve(media.path(name))), media.max_frames)
    if key not in _COUNTS:
        _COUNTS[key] = len(frames(name, media))
    return _COUNTS[key]


_COUNTS: dict[tuple[Identity, int], int] = {}


def interleaved_messages(row: QueryRow, media: MediaAccess, settings: Settings) -> list[dict[str, Any]]:
    """Return one user turn with every picture at its placeholder; text is stripped, empty pieces are dropped.

    Raises:
        DataError: placeholders and media do not match.
        MediaError: a file cannot be read, or the budget does not allow the row.
    """
    demo_steps, query_steps = _frame_steps(row, media, settings)
    parts: list[dict[str, Any]] = []
    for segment in row.segments:
        demo, shown = segment is row.example, 0
        for text, path in split_segment(row, segment):
            if path is None:
                parts.extend([{"type": "text", "text": text.strip()}] if text.strip() else [])
            elif is_video(path):
                parts.extend(_video_parts(path, media, (demo_steps if demo else query_steps)[path], settings))
            elif not demo or shown < settings.demo_video_frames:
                parts.append(_picture(path, media, settings))
                shown += 1
    images = sum(part["type"] == "image" for part in parts)
    if images > settings.max_images:
        raise _too_many(row, f"has {images} pictures", settings)
    return [{"role": "user", "content": parts}]


def _frame_steps(row: QueryRow, media: MediaAccess, settings: Settings) -> tuple[Mapping[str, int], Mapping[str, int]]:
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
        allowed = math.ceil(settings.demo_video_frames / len(demo_videos))
        demo = {path: math.ceil(infos[path].frames / allowed) for path in demo_videos}
    if not others:
        return demo, {}
    demo_images = min(len(row.example.media) - len(demo_videos), settings.demo_video_frames)
    stills = demo_images + len(row.description.media + row.query.media) - len(others)
    shown = sum(math.ceil(infos[path].frames / demo[path]) for path in demo_videos)
    left = math.floor((settings.max_images - stills - shown) / len(others))
    if left <= 0:
        raise _too_many(row, "leaves no frame for its videos", settings)
    query = {path: max(math.ceil(infos[path].frames / left), math.ceil(infos[path].fps)) for path in others}
    return demo, query


def _video_parts(path: str, media: MediaAccess, step: int, settings: Settings) -> list[dict[str, Any]]:
    from lmms_eval.media import Sampling, read_frames, shrink

    images = read_frames(media.path(path), Sampling(step=max(1, step))).images()
    shown = [{"type": "image", "url": shrink(image, max_side=settings.max_side)} for image in images]
    return [{"type": "text", "text": FRAMES_START}, *shown, {"type": "text", "text": FRAMES_END}]


def _picture(path: str, media: MediaAccess, settings: Settings) -> dict[str, Any]:
    from lmms_eval.media import header, shrink

    file = media.path(path)
    found = header(file)
    if settings.max_side is None or max(found.width, found.height) <= settings.max_side:
        return image_part(file)
    return {"type": "image", "url": shrink(open_image(file), max_side=settings.max_side)}


def _too_many(row: QueryRow, problem: str, settings: Settings) -> MediaError:
    return MediaError(
        f"MEGA-Bench row {row.id} of task {row.task_name} {problem}; the budget is {settings.max_images} pictures a "
        "call (max_images in lmms_eval_specific_kwargs)"
    )
