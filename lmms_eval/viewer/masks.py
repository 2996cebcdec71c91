"""Shapes over the pictures of samples: boxes, points and masks of answers and references."""

from __future__ import annotations

import io
import re
from ast import literal_eval
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from lmms_eval.errors import MediaError
from lmms_eval.results.sample import finite
from lmms_eval.tasks.general_bench.measures.mask_math import as_pixels
from lmms_eval.tasks.general_bench.regions import MASK_FORMS, Bodies, Regions, bodies_of, regions_of
from lmms_eval.utils.redaction import REDACTED
from lmms_eval.viewer.media import SIDE, MediaFolders, MediaStore, file_of, made_in

if TYPE_CHECKING:
    from numpy.typing import NDArray


MOST = 64
"""Most shapes of an answer that are drawn."""
_IN_BRACKETS = re.compile(r"[(\[]([^()\[\]]{1,200})[)\]]")
_IN_TAGS = re.compile(r"<(?:point|box)>([^<>]{1,200})</(?:point|box)>")
_FRAME = re.compile(r"Frame (\d{1,6}):")
_LONGEST = 20_000

Shape = dict[str, Any]
"""``of`` (``answer``, ``reference``), ``at`` (left, top, right, bottom; for a point left and top) or ``src`` (a mask),
``label``, and ``medium``, the number of the medium below it unless that is the last one."""


def shapes_of(sample: Mapping[str, Any], width: float | None, height: float | None) -> list[Shape]:
    """Return the shapes in a sample's line. ``width`` and ``height`` are those of its picture in pixels.

    MEGA-Bench names the rule of each field of an answer; the rules for boxes and points take shares of the picture.
    General-Bench names the form of an answer; boxes are left, top, width and height in pixels.
    """
    found = [*_of_fields(sample)]
    forms = [value.get("form") for value in sample.values() if isinstance(value, Mapping) and "measure" in value]
    if width and height and ("boxes" in forms or "tube" in forms):
        read = prediction_of(sample)
        answered = read if isinstance(read, list) else _literal(sample.get("filtered_resps"), list)
        for name, boxes in (("reference", _literal(sample.get("target"), list)), ("answer", answered)):
            if "boxes" in forms:
                found += _in_pixels(name, boxes[:MOST], width, height)
            for frame, medium in frames_in(sample).items() if "tube" in forms else ():
                drawn = _in_pixels(name, boxes[frame : frame + 1], width, height)
                found += [{**box, "medium": medium} for box in drawn]
    return found


def prediction_of(sample: Mapping[str, Any]) -> Any:
    """Return the JSON value that General-Bench has read from an answer, or ``None`` if the sample does not have it."""
    noted = sample.get("predictions")
    record = noted.get("record") if isinstance(noted, Mapping) else None
    return record.get("prediction") if isinstance(record, Mapping) else None


def frames_in(sample: Mapping[str, Any]) -> dict[int, int]:
    """Map the number of each frame of a video to the number of the medium that shows it.

    In tasks about frames, General-Bench writes the number of each frame before its picture.
    """
    found: dict[int, int] = {}
    messages = sample.get("messages")
    if isinstance(messages, list) and messages and isinstance(messages[0], list):  # repeats show the same media
        messages = messages[0]
    number: int | None = None
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, Mapping) else None
        for part in content if isinstance(content, list) else ():
            if not isinstance(part, Mapping):
                continue
            if number is not None and isinstance(part.get("media"), int):
                found[number] = part["media"]
            text = _FRAME.fullmatch(str(part.get("text", "")))
            number = int(text[1]) if text else None
    return found


def _of_fields(sample: Mapping[str, Any]) -> Iterator[Shape]:
    """Yield the shapes in fields of MEGA-Bench with a rule for boxes or points."""
    doc, submission = sample.get("doc"), sample.get("submission")
    if not isinstance(doc, Mapping) or not isinstance(submission, Mapping):
        return
    rules = _literal(doc.get("metric_info")).get("field_score_function")
    right = submission.get("correct_answer")
    if not isinstance(rules, Mapping) or not isinstance(right, Mapping):
        return
    fields = [field for field, rule in rules.items() if "bbox" in str(rule)]
    response = _literal(submission.get("response"))
    context = submission.get("eval_context")
    bounds = context.get("bounding_boxes") if isinstance(context, Mapping) else None
    for field in fields:
        # A point is right in any of the question's boxes.
        yield from _shares("reference", bounds if "point" in str(rules[field]) else right.get(field))
        # An answer with one field may be the text itself; an answer with several fields names them.
        yield from _shares("answer", response.get(field, submission.get("response") if len(rules) == 1 else None))


def _shares(of: str, value: Any) -> Iterator[Shape]:
    text = str(value)[:_LONGEST] if value is not None else ""
    groups = _IN_TAGS.findall(text) or _IN_BRACKETS.findall(text)
    for group in groups[:MOST]:
        numbers = [_number(part) for part in group.split(",")]
        if len(numbers) in (2, 4) and all(number is not None and 0 <= number <= 1 for number in numbers):
            yield {"of": of, "at": numbers, "label": ""}


def _in_pixels(of: str, boxes: Sequence[Any], width: float, height: float) -> Iterator[Shape]:
    for entry in boxes:
        box = entry
        if isinstance(entry, Mapping):
            at = entry.get("box")
            box = [*(at if isinstance(at, list) else ()), entry.get("label", "")]
        if not isinstance(box, list | tuple) or len(box) < 4:
            continue
        left, top, wide, high = (finite(number) for number in box[:4])
        if left is None or top is None or wide is None or high is None:
            continue
        at = [left / width, top / height, (left + wide) / width, (top + high) / height]
        yield {"of": of, "at": at, "label": str(box[4])[:80] if len(box) > 4 else ""}


def _literal(value: Any, kind: type[Any] = dict) -> Any:
    """Parse a text as JSON or Python literals. Returns an empty value of the kind if that fails."""
    text = value if isinstance(value, str) and len(value) <= _LONGEST else ""
    for read in (orjson.loads, literal_eval):
        try:
            found = read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            continue
        if isinstance(found, kind):
            return found
    return kind()


def _number(text: str) -> float | None:
    try:
        return finite(float(text))
    except ValueError:
        return None


_FILL, _EDGE = 1, 2
"""Indices of a mask's colours in its palette."""
_STRIPE, _WIDE = 8, 2
"""Width of an answer's stripes and of an edge, in pixels."""
_COLOURS = {"reference": (31, 157, 91), "answer": (216, 64, 47)}
_OPACITIES = bytes([0, 110, 255])
_KEYS = {"reference": "target", "answer": "filtered_resps"}
_NOWHERE = "/nonexistent"
_MOST_PIXELS = 32_000_000
"""Most pixels of a picture with masks. Drawing a mask needs one byte for each."""
_ALIKE = 0.02
"""Largest relative difference between the aspect ratios of a mask and its picture."""


def has_masks(sample: Mapping[str, Any]) -> bool:
    """Return whether the metric of a sample's line takes masks."""
    return isinstance(sample.get("doc"), Mapping) and any(
        isinstance(value, Mapping) and "measure" in value and value.get("form") in MASK_FORMS
        for value in sample.values()
    )


_DEEPEST = 4


def without_runs(text: str) -> str:
    """Replace the run-length masks of a JSON text by their sizes in words. Returns other texts unchanged."""
    if '"counts"' not in text:
        return text
    try:
        found = _in_words(orjson.loads(text), 0)
    except orjson.JSONDecodeError:
        return text
    return found if isinstance(found, str) else orjson.dumps(found).decode()


def _in_words(value: Any, depth: int) -> Any:
    if isinstance(value, Mapping):
        size = value.get("size")
        if "counts" in value and isinstance(size, list) and len(size) == 2:
            return f"mask of {size[1]} × {size[0]} pixels"
        return {key: _in_words(item, depth + 1) if depth < _DEEPEST else item for key, item in value.items()}
    if isinstance(value, list) and depth < _DEEPEST:
        return [_in_words(item, depth + 1) for item in value]
    return value


def masks_of(sample: Mapping[str, Any], store: MediaStore, places: MediaFolders) -> list[Shape]:
    """Draw the masks of a sample's line: for each side and each picture, one small file of the store.

    Tasks of instances may have key points instead of masks. These are returned as points. Raises ``LmmsEvalError`` if a
    file cannot be written.
    """
    doc, sent = sample["doc"], sample.get("sent_media")
    media = [medium if isinstance(medium, Mapping) else {} for medium in (sent if isinstance(sent, list) else ())]
    frames, last = frames_in(sample), len(media) - 1
    folder, prediction = _folder(doc.get("folder"), media), _prediction(sample, places)
    if not places.permit(folder):
        folder = Path(_NOWHERE)
    found = regions_of(doc, folder, prediction, _size(media, last), frames)
    drawn = [*_points(sample, bodies_of(doc, folder, prediction), _size(media, last))]
    for regions in found:
        medium = last if regions.frame is None else frames[regions.frame]
        if sample.get(_KEYS[regions.of]) != REDACTED and _fits(regions, _size(media, medium)):
            labels = ", ".join(dict.fromkeys(label[:80] for label in regions.labels if label))
            drawn.append(
                {"of": regions.of, "src": store.save(_drawn(regions), "png"), "medium": medium, "label": labels}
            )
    return drawn


def _points(sample: Mapping[str, Any], found: Sequence[Bodies], picture: tuple[int, int] | None) -> Iterator[Shape]:
    if picture is None:
        return
    height, width = picture
    for side in found:
        if sample.get(_KEYS[side.of]) == REDACTED:
            continue
        for body, label in zip(side.points, side.labels, strict=True):
            for x, y in body[:MOST]:
                if 0 <= x <= width and 0 <= y <= height:
                    yield {"of": side.of, "at": [x / width, y / height], "label": label[:80]}


def _folder(stated: Any, media: Sequence[Mapping[str, Any]]) -> Path:
    """Find the task's folder by the media that were sent from it. It may have been moved since the run."""
    inside = f"/{stated}/"
    for path in (str(medium.get("path")) for medium in media):
        before, found, _ = path.partition(inside)
        if found:
            return Path(before + found)
    return Path(_NOWHERE)


def _prediction(sample: Mapping[str, Any], places: MediaFolders) -> Any:
    """Return the value that was scored. If it is a file, it must be a picture that the model made."""
    prediction = prediction_of(sample)
    if not isinstance(prediction, str):
        return prediction
    made = made_in(sample)
    try:
        return str(file_of(made[prediction], places).resolve()) if prediction in made else None
    except MediaError:
        return None


def _size(media: Sequence[Mapping[str, Any]], number: int) -> tuple[int, int] | None:
    """Return the height and width that a medium's entry states."""
    stated = media[number] if 0 <= number < len(media) else {}
    height, width = stated.get("height"), stated.get("width")
    if not isinstance(height, int) or not isinstance(width, int):
        return None
    return (height, width) if min(height, width) > 0 and height * width <= _MOST_PIXELS else None


def _fits(regions: Regions, picture: tuple[int, int] | None) -> bool:
    if picture is None:
        return False
    (height, width), (high, wide) = regions.size, picture
    return abs(height * wide / (width * high) - 1) <= _ALIKE


def _drawn(regions: Regions) -> bytes:
    """Draw masks with edges, at the size of a thumbnail. The reference is filled, the answer striped."""
    import numpy as np
    from PIL import Image

    owner = _owners(regions)
    around = np.pad(owner, _WIDE)
    edge = np.zeros(owner.shape, dtype=bool)
    for down, right in ((0, _WIDE), (2 * _WIDE, _WIDE), (_WIDE, 0), (_WIDE, 2 * _WIDE)):
        edge |= around[down : down + owner.shape[0], right : right + owner.shape[1]] != owner
    places = np.add.outer(np.arange(owner.shape[0]), np.arange(owner.shape[1]))
    filled = owner > 0 if regions.of == "reference" else (owner > 0) & (places // _STRIPE % 2 == 0)
    picture = Image.fromarray(np.where(edge & (owner > 0), _EDGE, np.where(filled, _FILL, 0)).astype(np.uint8), "P")
    picture.putpalette(_COLOURS[regions.of] * 3)
    data = io.BytesIO()
    picture.save(data, "PNG", transparency=_OPACITIES)
    return data.getvalue()


def _owners(regions: Regions) -> NDArray[Any]:
    """Return the number of each pixel's mask, starting at 1; 0 without a mask, and the last one of several."""
    import numpy as np

    height, width = (max(1, round(side * SIDE / max(regions.size))) for side in regions.size)
    owner = np.zeros((width, height), dtype=np.uint8)
    for number, mask in enumerate(regions.masks[:MOST], 1):
        columns = as_pixels(mask).T  # the order in memory
        owner[_resized(_resized(columns, 1, height), 0, width)] = number
    return owner.T


def _resized(flags: NDArray[Any], axis: int, length: int) -> NDArray[Any]:
    """Resize one axis so that no set pixel is lost."""
    import numpy as np

    given = flags.shape[axis]
    places = np.arange(length) * given // length
    return np.maximum.reduceat(flags, places, axis=axis) if length < given else np.take(flags, places, axis=axis)
