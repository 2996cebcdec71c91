"""Pictures and frames of predictions and items in the form that networks take, and the texts to compare them with."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import Item, UnreadableAnswer
from lmms_eval.tasks.general_bench.readers.pictures import PICTURE_SUFFIXES, read_frames, read_rgb
from lmms_eval.tasks.general_bench.readers.sides import predicted_path, prediction_of, reference_path

if TYPE_CHECKING:
    from PIL import Image

MAX_FRAMES = 4096
"""A longer video is an error, because networks process every frame."""
MAX_VIEWS = 64
_VIEW_SIDE = 224
_CAPTION_KEYS = ("caption", "text")


def media_of(prediction: Any) -> Any:
    """Return the path of a prediction, which it is or has as ``path`` among other entries, or ``None``."""
    return prediction.get("path") if isinstance(prediction, Mapping) else prediction


def predicted_picture(prediction: Any, item: Item) -> Image.Image:
    """Return the predicted picture. Raises ``UnreadableAnswer`` if there is no readable one."""
    with prediction_of(item).reading():
        return _picture(predicted_path(media_of(prediction), item))


def predicted_frames(prediction: Any, item: Item) -> Iterator[Image.Image]:
    """Yield the frames of the predicted video, decoding them lazily.

    Raises:
        UnreadableAnswer: it is missing, or, when the frame is reached, it cannot be read, or is one of too many.
    """
    with prediction_of(item).reading():
        yield from frames_of(predicted_path(media_of(prediction), item))


def frames_of(path: Path) -> Iterator[Image.Image]:
    """Yield the frames of a video file or folder.

    Raises:
        MediaError: a frame cannot be read.
        DataError: there are more than ``MAX_FRAMES``.
    """
    from PIL import Image

    for number, frame in enumerate(read_frames(path)):
        if number == MAX_FRAMES:
            raise DataError(f"{path} has more than {MAX_FRAMES} frames")
        yield Image.fromarray(frame)


def reference_pictures(value: Any, item: Item) -> list[Image.Image]:
    """Return the pictures of an annotation: a path or a list of paths.

    Raises:
        DataError: it is neither. MediaError: a picture is missing or damaged.
    """
    paths = value if isinstance(value, list | tuple) else [value]
    if not 0 < len(paths) <= MAX_VIEWS:
        raise DataError(f"{item.where}: 1 to {MAX_VIEWS} reference pictures are needed")
    return [_picture(reference_path(path, item)) for path in paths]


def input_pictures(item: Item) -> list[Image.Image]:
    """Return the pictures of the question.

    Raises:
        DataError: it has none. MediaError: one is missing or damaged.
    """
    paths = [path for media in item.media if media.kind == "image" for path in media.paths]
    if not paths:
        raise DataError(f"{item.where}: the item has no input picture that the prediction could be held against")
    return [_picture(path) for path in paths[:MAX_VIEWS]]


def views(prediction: Any, item: Item) -> list[Image.Image]:
    """Return pictures of a predicted 3D object: the rendered views of the prediction (a picture, a folder or a list of
    pictures), else four simple views (``prompts.point_views``) of its points or surface.

    Raises ``UnreadableAnswer`` if nothing of that kind can be read.
    """
    from lmms_eval.tasks.general_bench.prompts.point_views import views as point_views
    from lmms_eval.tasks.general_bench.readers.points import read_points

    named = media_of(prediction)
    with prediction_of(item).reading():
        if isinstance(named, list) and named and all(isinstance(one, str) for one in named[:MAX_VIEWS]):
            _check_count(len(named), item)
            return [_picture(predicted_path(one, item)) for one in named]
        if not isinstance(named, str):
            return point_views(read_points(named), _VIEW_SIDE)
        path = predicted_path(named, item)
        if path.is_dir() or path.suffix.lower() in PICTURE_SUFFIXES:
            found = list(itertools.islice(frames_of(path), MAX_VIEWS + 1)) if path.is_dir() else [_picture(path)]
            _check_count(len(found), item)
            return found
        return point_views(read_points(path), _VIEW_SIDE)


def wanted_text(item: Item) -> str:
    """Return the caption among an item's outputs, else its prompt. Raises ``DataError`` if it has neither."""
    output = item.raw.get("output")
    captions = [output.get(key) for key in _CAPTION_KEYS] if isinstance(output, Mapping) else []
    for text in (*captions, item.prompt):
        if isinstance(text, str) and text.strip():
            return text.strip()
    raise DataError(f"{item.where}: the item has no text: neither `output.caption`, `output.text` nor a prompt")


def input_text(item: Item, key: str) -> str:
    """Return the text of ``input.<key>``, or an empty text."""
    given = item.raw.get("input")
    value = given.get(key) if isinstance(given, Mapping) else None
    return value.strip() if isinstance(value, str) else ""


def _picture(path: Path) -> Image.Image:
    from PIL import Image

    return Image.fromarray(read_rgb(path))


def _check_count(count: int, item: Item) -> None:
    if count > MAX_VIEWS:
        raise UnreadableAnswer(f"{item.where}: more than {MAX_VIEWS} views of one object")
