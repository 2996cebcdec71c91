"""Records of ``prediction.json`` from a model's replies, and the values of records that are scored."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from lmms_eval.api.interleaved import InterleavedText
from lmms_eval.errors import MediaError
from lmms_eval.tasks.general_bench.data.documents import item_of, stated_name, stated_type
from lmms_eval.tasks.general_bench.facts import LANGUAGE
from lmms_eval.tasks.general_bench.items import Form, Item
from lmms_eval.tasks.general_bench.prompts import nlp
from lmms_eval.tasks.general_bench.prompts.forms import LOWER_CASED, is_cut_at_tag
from lmms_eval.tasks.general_bench.prompts.media import frame_count
from lmms_eval.tasks.general_bench.readers.regions import MAX_FRAMES
from lmms_eval.tasks.general_bench.readers.sides import finite
from lmms_eval.tasks.general_bench.scoring import REPLY
from lmms_eval.tasks.general_bench.settings import Settings

_LABELS = ("label", "category", "class", "name")
_SCORES = ("score", "confidence")
_LISTS = ("boxes", "objects", "detections", "instances", "triplets", "polygons", "segmentation", "masks", "answer")
_POLYGONS = ("mask", "polygons", "polygon", "segmentation", "points")
_RELATIONS = ("predicate", "relation", "relationship")
_FARTHEST = 1e9
"""Numbers beyond this are no pixels."""


def boxes(value: Any) -> list[Any] | None:
    """Read ``[x, y, width, height]``, with label and score if given, from lists, from ``{"bbox": [x, y, w, h]}`` or
    from ``{"bbox_2d": [x1, y1, x2, y2]}``. A single box needs no list around it.
    """
    alone = box(value)
    return [alone] if alone is not None else _each(unwrapped(value), box)


def box(value: Any) -> list[Any] | None:
    """Read one box."""
    if isinstance(value, dict):
        return _keyed_box(value)
    if not isinstance(value, list) or not 4 <= len(value) <= 6 or not _are_numbers(value[:4]):
        return None
    return value if all(isinstance(more, str) or finite(more) is not None for more in value[4:]) else None


def polygons(value: Any) -> Any:
    """Read ``[[x1, y1, x2, y2, ...], ...]`` from such lists, from lists of ``[x, y]``, or from one polygon without a
    list around it. Run lengths (``{"size", "counts"}``) are kept.
    """
    if isinstance(value, dict):
        if "size" in value and "counts" in value:
            return value
        inner = next((value[key] for key in _POLYGONS if key in value), None)
        return None if inner is None else polygons(inner)
    if not isinstance(value, list):
        return None
    alone = _polygon(value)
    return [alone] if alone is not None else _each(value, _polygon)


def instances(value: Any) -> list[Any] | None:
    """Read ``{"mask" | "box" | "indices" | "keypoints": ..., "label", "score"}`` from objects with such keys.

    Masks and indices are part of the reply itself. A path that a model writes is not accepted.
    """
    values = [value] if _instance(value) is not None else unwrapped(value)
    return _each(values, _instance)


def triplets(value: Any) -> list[Any] | None:
    """Read ``[subject, predicate, object]`` from lists or objects with these keys. A single one needs no list."""
    alone = _triplet(value)
    return [alone] if alone is not None else _each(unwrapped(value), _triplet)


def rows(value: Any) -> list[Any] | None:
    """Return a list of lists of numbers, or of lists of them, unchanged."""
    return value if isinstance(value, list) and all(map(_is_row, value)) else None


def entries(value: Any) -> list[Any] | None:
    """Return a list without texts among its entries, unchanged."""
    return value if isinstance(value, list) and not any(isinstance(one, str) for one in value) else None


def unwrapped(value: Any) -> Any:
    """Return the list in an object such as ``{"boxes": [...]}``, and anything else unchanged."""
    if not isinstance(value, dict):
        return value
    return next((value[key] for key in _LISTS if isinstance(value.get(key), list)), value)


def _each(values: Any, read: Callable[[Any], Any]) -> list[Any] | None:
    if not isinstance(values, list):
        return None
    found = [read(value) for value in values]
    return None if any(one is None for one in found) else found


def _are_numbers(values: list[Any]) -> bool:
    return all((number := finite(value)) is not None and abs(number) <= _FARTHEST for value in values)


def _keyed_box(value: dict[str, Any]) -> list[Any] | None:
    corners = value.get("bbox_2d")
    place = value.get("bbox", value.get("box"))
    if corners is not None:
        if not isinstance(corners, list) or len(corners) != 4 or not _are_numbers(corners):
            return None
        place = [corners[0], corners[1], corners[2] - corners[0], corners[3] - corners[1]]
    if not isinstance(place, list) or len(place) != 4 or not _are_numbers(place):
        return None
    label, score = _label(value), _first(value, _SCORES)
    return [*place, *([] if label is None else [label]), *([score] if finite(score) is not None else [])]


def _is_row(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    return all(_are_numbers(part) if isinstance(part, list) else finite(part) is not None for part in value)


def _label(value: dict[str, Any]) -> str | None:
    """Return the label of an object. The number of a class becomes its digits."""
    found = _first(value, _LABELS)
    return str(found) if isinstance(found, str | int) and not isinstance(found, bool) else None


def _first(value: dict[str, Any], keys: tuple[str, ...]) -> Any:
    return next((value[key] for key in keys if key in value), None)


def _polygon(value: Any) -> list[Any] | None:
    """Return a flat polygon ``[x1, y1, x2, y2, ...]`` of at least three points."""
    if not isinstance(value, list) or len(value) < 3:
        return None
    if all(isinstance(point, list) and len(point) == 2 for point in value):
        value = [number for point in value for number in point]
    return value if len(value) >= 6 and len(value) % 2 == 0 and _are_numbers(value) else None


def _instance(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        return None
    found: dict[str, Any] = {}
    place = _keyed_box(value)
    outline = next((value[key] for key in _POLYGONS[:4] if key in value), None)
    if "keypoints" in value or "indices" in value:
        found = {key: value[key] for key in ("keypoints", "indices") if isinstance(value.get(key), list)}
    elif outline is not None:
        found["mask"] = polygons(outline)
    elif place is not None:
        found["box"] = place[:4]
    if not found or any(part is None for part in found.values()):
        return None
    label, score = _label(value), _first(value, _SCORES)
    if label is not None:
        found["label"] = label
    if finite(score) is not None:
        found["score"] = score
    return found


def _triplet(value: Any) -> list[str] | None:
    if isinstance(value, dict):
        value = [value.get("subject"), _first(value, _RELATIONS), value.get("object")]
    if not isinstance(value, list) or len(value) != 3 or not all(isinstance(part, str) for part in value):
        return None
    return value


MAX_HELD = 5_000_000
"""Most characters of the masks of all frames together, as JSON, if masks are kept for frames that were not shown."""
_MAX_UNKNOWN = 10_000
"""Most frames of a video of unknown length."""
_ABSENT = object()


def tube_frames(value: Any, total: int | None) -> list[Any] | None:
    """Return ``[x, y, width, height]`` or ``null`` for each frame, or ``None`` if the value is no such answer.

    Entries with frame numbers (``[number, box]``, ``[number, x, y, w, h]``, ``{"frame": number, "bbox": ...}``, or an
    object by number) are for these frames. Between two boxes, the frames in between are interpolated. Between a box and
    ``null``, the earlier one is kept. Frames outside the numbered ones have no answer.
    """
    alone = _tube_box(value)
    if alone is not None and alone is not _ABSENT:
        return [alone]
    return _frames(
        value, total, _tube_box,
        lambda first, second, share: [one + (other - one) * share for one, other in zip(first, second, strict=True)],
    )  # fmt: skip


def mask_frames(value: Any, total: int | None) -> list[Any] | None:
    """Return polygons (or run lengths) or ``null`` for each frame, as ``tube_frames``, the earlier mask in between."""
    found = _frames(value, total, _mask, lambda first, _second, _share: first)
    if found is None:
        return None
    sizes = {key: len(json.dumps(mask)) for key, mask in {id(mask): mask for mask in found}.items()}
    return found if sum(sizes[id(mask)] for mask in found) <= MAX_HELD else None


def _frames(
    value: Any, total: int | None, read: Callable[[Any], Any], between: Callable[[Any, Any, float], Any]
) -> list[Any] | None:
    numbered = _numbered(value, read)
    if numbered is not None:
        length = min(max(numbered) + 1, _MAX_UNKNOWN) if total is None else min(total, MAX_FRAMES)
        frames: list[Any] = [None] * length
        known = sorted(number for number in numbered if number < length)
        for number in known:
            frames[number] = None if numbered[number] is _ABSENT else numbered[number]
        for first, second in itertools.pairwise(known):
            start, end = frames[first], frames[second]
            for number in range(first + 1, second):
                if start is not None:
                    frames[number] = start if end is None else between(start, end, (number - first) / (second - first))
        return frames
    entries = unwrapped(value)
    if not isinstance(entries, list):
        return None
    found = [read(entry) for entry in entries]
    if any(entry is None for entry in found):
        return None
    return [None if entry is _ABSENT else entry for entry in found]


def _numbered(value: Any, read: Callable[[Any], Any]) -> Mapping[int, Any] | None:
    """Read entries by the numbers of their frames, or return ``None`` if they have none."""
    pairs = _pairs(value)
    if not pairs:
        return None
    found: dict[int, Any] = {}
    for number, entry in pairs:
        frame = finite(int(number) if isinstance(number, str) and number.isdecimal() and len(number) < 10 else number)
        known = read(entry)
        if frame is None or frame != int(frame) or frame < 0 or known is None:
            return None
        found[int(frame)] = known
    return found


def _pairs(value: Any) -> list[list[Any]] | None:
    if isinstance(value, dict) and value and all(key.isdecimal() for key in value):
        return [[key, entry] for key, entry in value.items()]
    entries = unwrapped(value)
    if not isinstance(entries, list):
        return None
    pairs = [pair for entry in entries if (pair := _pair(entry)) is not None]
    if len(pairs) < len(entries):
        return None
    if any(len(entry) == 5 for entry in entries):  # numbers that do not ascend are those of boxes with scores
        numbers = [number for number in (finite(pair[0]) for pair in pairs) if number is not None]
        is_whole = len(numbers) == len(pairs) and all(number.is_integer() for number in numbers)
        if not is_whole or any(first >= second for first, second in itertools.pairwise(numbers)):
            return None
    return pairs


def _pair(entry: Any) -> list[Any] | None:
    """Return ``[number, answer]`` of an entry that has its frame's number."""
    if isinstance(entry, dict) and "frame" in entry:
        rest = {key: part for key, part in entry.items() if key != "frame"}
        return [entry["frame"], rest]
    if isinstance(entry, list) and len(entry) == 5 and all(finite(number) is not None for number in entry):
        return [entry[0], entry[1:]]
    if isinstance(entry, list) and len(entry) == 2 and finite(entry[0]) is not None:
        return entry if isinstance(entry[1], list | dict | None) else None
    return None


def _tube_box(value: Any) -> Any:
    if value is None or _says_none(value):
        return _ABSENT
    found = box(value)
    return None if found is None else found[:4]


def _mask(value: Any) -> Any:
    if value is None or value == [] or _says_none(value):
        return _ABSENT
    return polygons(value)


def _says_none(value: Any) -> bool:
    """Return whether an object has ``null`` as its only entry."""
    return isinstance(value, dict) and len(value) == 1 and next(iter(value.values())) is None


_SIGN = re.compile(r'[\[\]{}"\n]|\\.', re.DOTALL)
_OPENS = {"]": "[", "}": "{"}
_TRAILING_COMMA = re.compile(r",(?=\s*[\]}])")
_NONE = re.compile(r"\bNone\b")
_MOST_VALUES = 50
_MAX_DIGITS = 18
"""Most digits of an integer, to fit 64 bits."""


def json_values(text: str) -> Iterator[Any]:
    """Yield the JSON lists and objects of a text that are not inside others, the last first, at most 50.

    A list that the end of the reply cuts off comes first, with its complete entries. Single quotes, ``None`` and commas
    before a closing bracket, as Python writes lists, are accepted.
    """
    spans, unclosed = _spans(text)
    if spans:
        start = next((start for start, _ in reversed(unclosed) if start < spans[-1][0]), None)
        if start is not None and text[start] == "[":
            yield from _parsed(text[start : spans[-1][1]] + "]")
    yield from itertools.islice(
        (value for start, stop in reversed(spans) for value in _parsed(text[start:stop])), _MOST_VALUES
    )


def _spans(text: str) -> tuple[list[tuple[int, int]], list[tuple[int, str]]]:
    """Find the bounds of the outermost pairs of brackets in order, and the unclosed brackets with their positions."""
    opened: list[tuple[int, str]] = []
    spans: list[tuple[int, int]] = []
    pending = {"[": 0, "{": 0}
    for place, sign in _brackets(text):
        wanted = _OPENS.get(sign)
        if wanted is None:
            opened.append((place, sign))
            pending[sign] += 1
        elif pending[wanted]:
            start, last = opened.pop()
            while last != wanted:
                pending[last] -= 1
                start, last = opened.pop()
            pending[wanted] -= 1
            while spans and spans[-1][0] > start:
                spans.pop()
            spans.append((start, place + 1))
    return spans, opened


def _brackets(text: str) -> Iterator[tuple[int, str]]:
    """Yield position and sign of brackets outside quotations. An unclosed quotation mark of a line is ignored."""
    held: list[tuple[int, str]] | None = None
    for match in _SIGN.finditer(text):
        sign = match[0]
        if sign == '"':
            held = [] if held is None else None
        elif sign == "\n":
            yield from held or ()
            held = None
        elif sign[0] != "\\":
            if held is None:
                yield match.start(), sign
            else:
                held.append((match.start(), sign))
    yield from held or ()


def _parsed(text: str) -> Iterator[Any]:
    """Yield the value of a text if it is JSON, or nearly JSON: other quotes, ``None``, a last comma."""
    plain = _TRAILING_COMMA.sub("", _NONE.sub("null", text))
    for attempt in (text, plain if '"' in plain else plain.replace("'", '"')):
        try:
            yield json.loads(attempt, parse_constant=_refuse, parse_int=_integer, parse_float=_float)
        except (ValueError, RecursionError):
            continue
        return


def _integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError("an integer of too many digits")
    return int(digits)


def _float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits:.40} is no finite number")
    return number


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no number")


_NUMBER = re.compile(r"(?<![\w.])-?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][+-]?\d{1,3})?")

_PICTURED: frozenset[Form] = frozenset(
    {"image", "mask", "labels", "instances", "saliency", "map", "alpha", "depth", "flow", "normals"}
)
"""Forms of answers that may be a picture made by the model."""
_READERS: Mapping[Form, Callable[[Any], Any]] = MappingProxyType(
    {
        "boxes": boxes,
        "mask": polygons,
        "instances": instances,
        "triplets": triplets,
        "points": rows,
        "poses": rows,
        "tracks": entries,
        "detections3d": entries,
        "notes": rows,
    }
)
"""Readers that turn a JSON value into a prediction. They return ``None`` if the value is no answer."""


def extract_media(item: Item, reply: str) -> Any:
    """Return the prediction in a reply, as a JSON value in the item's form, else the reply's text.

    An ``InterleavedText`` may carry pictures; the last one is the answer where a picture is wanted.
    """
    text = str(reply).strip()
    if item.form == "text":
        if is_cut_at_tag(item.facts):
            text = text.partition("<")[0].strip()
        return text.lower() if item.facts in LOWER_CASED else text
    if item.form == "number":
        number = last_number(text)
        return text if number is None else number
    if item.form in _PICTURED and isinstance(reply, InterleavedText):
        paths = [image.path for image in reply.images if image.path]
        if paths:
            return paths[-1]
    read = _READERS.get(item.form)
    if item.form in ("tube", "masks"):
        total = None
        with contextlib.suppress(MediaError):  # the question could not be asked then; the reply is read for what it is
            total = frame_count(item)
        read = partial(tube_frames if item.form == "tube" else mask_frames, total=total)
    for value in json_values(text) if read is not None else ():
        if read is not None and (found := read(value)) is not None:
            return found
    is_quoted = len(text) > 2 and text[0] == text[-1] and text[0] in "`'\""  # a path, most likely
    return text[1:-1].strip() if is_quoted else text


def last_number(text: str) -> int | float | None:
    """Return the last number of a text, also with commas between thousands, or ``None`` without a usable one."""
    last = None
    for match in _NUMBER.finditer(text):
        last = match
    if last is None or len(last[0]) > _MAX_DIGITS:
        return None
    digits = last[0].replace(",", "")
    return int(digits) if digits.lstrip("-").isdigit() else finite(float(digits))


PREDICTION = "prediction"


def record(doc: Mapping[str, Any], reply: Any, settings: Settings) -> dict[str, Any]:
    """Read a reply as a record: ``id`` and ``prediction``, or for word problems steps and final answer.

    A text that would be taken for a path is inside an object (``REPLY``), because a model names no files except
    pictures that it made itself.
    """
    item = item_of(doc, settings)
    if item.facts.modality == LANGUAGE:
        extract = nlp.extract_fixed if settings.extraction == "fixed" else nlp.extract
        return {"id": item.id, **extract(stated_name(doc, item), stated_type(doc), item.raw, str(reply))}
    extracted = extract_media(item, reply)
    if item.form not in ("text", "number") and isinstance(extracted, str):
        made = {str(image.path) for image in getattr(reply, "images", ())}
        extracted = extracted if extracted in made else {REPLY: extracted}
    return {"id": item.id, PREDICTION: extracted}


def prediction(made: Mapping[str, Any]) -> Any:
    """Return the value of a record that is scored. ``prediction`` takes precedence over ``prediction_final``."""
    return made.get(PREDICTION, made.get("prediction_final"))
