"""A question as parts of a chat message.

Frames are pictures; point clouds, which no chat model takes, are shown as pictures from four sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from lmms_eval.errors import DataError, MediaError
from lmms_eval.media.video import Sampling, read_frames
from lmms_eval.tasks._task_utils.pictures import image_part
from lmms_eval.tasks.general_bench.items import MediaInput
from lmms_eval.tasks.general_bench.prompts.frames import frame_files, in_frames, shown
from lmms_eval.tasks.general_bench.prompts.media import Question
from lmms_eval.tasks.general_bench.prompts.point_views import views
from lmms_eval.tasks.general_bench.readers.points import read_points

PointOption = Literal["render", "refuse"]
_VIEWS = "The point cloud, seen from four sides (brighter is nearer):"


def message_parts(question: Question, points: PointOption = "render") -> list[dict[str, Any]]:
    """The parts of the user's message, as ``doc_to_messages`` gives them.

    Args:
        question: what is asked.
        points: what becomes of point clouds: pictures of them, or an error.

    Raises:
        MediaError: a medium is missing or unreadable, or a point cloud where they are refused.
    """
    parts: list[dict[str, Any]] = []
    for part in question.parts:
        if isinstance(part, str):
            parts.append(_text(part))
        else:
            parts.extend(_medium(part, question, points))
    return parts


def _medium(medium: MediaInput, question: Question, points: PointOption) -> Iterator[dict[str, Any]]:
    kind = "frames" if in_frames(medium) else medium.kind
    match kind:
        case "image":
            yield from map(image_part, medium.paths)
        case "frames":
            files = frame_files(medium)
            numbers = shown(len(files), question.max_frames)
            yield from _frames([image_part(files[number]) for number in numbers], numbers, question)
        case "video" if question.numbers_frames:
            read = read_frames(str(medium.paths[0]), Sampling(count=question.max_frames))
            pictures = [{"type": "image", "url": image} for image in read.images()]
            yield from _frames(pictures, read.indices, question)
        case "video" | "audio":
            for path in medium.paths:
                if not path.is_file():
                    raise MediaError(f"the {kind} {path} is not there")
                yield {"type": kind, "url": str(path)}
        case _:
            if points == "refuse":
                raise MediaError(
                    f"the point cloud {medium.paths[0]} cannot be given to a chat model; with points=render it is "
                    "shown as pictures"
                )
            for path in medium.paths:
                try:
                    cloud = read_points(path)
                except DataError as error:
                    raise MediaError(str(error)) from error
                yield _text(_VIEWS)
                yield from ({"type": "image", "url": view} for view in views(cloud))


def _frames(pictures: Sequence[dict[str, Any]], numbers: Sequence[int], question: Question) -> Iterator[dict[str, Any]]:
    for number, picture in zip(numbers, pictures, strict=True):
        if question.numbers_frames:
            yield _text(f"Frame {number}:")
        yield picture


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
