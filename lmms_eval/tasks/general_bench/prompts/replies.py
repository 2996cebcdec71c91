"""Records of ``prediction.json`` from a model's replies, and the values of records that are scored."""

from __future__ import annotations

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
from lmms_eval.tasks.general_bench.prompts import nlp_extraction
from lmms_eval.tasks.general_bench.prompts.media import frame_count
from lmms_eval.tasks.general_bench.prompts.reply_shapes import (
    boxes,
    entries,
    instances,
    mask_frames,
    polygons,
    rows,
    triplets,
    tube_frames,
)
from lmms_eval.tasks.general_bench.prompts.text_tasks import LOWER_CASED, is_cut_at_tag
from lmms_eval.tasks.general_bench.readers.sides import finite
from lmms_eval.tasks.general_bench.scoring import REPLY
from lmms_eval.tasks.general_bench.settings import Settings

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
    """Yield position and sign of brackets outside quotations. A quotation mark that is not closed on its line is
    ignored.
    """
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

    Args:
        item: the question's item.
        reply: the model's answer, trimmed or not; an ``InterleavedText`` may carry pictures; the last one is the
            answer where a picture is wanted.
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
    found = _structured(item, text)
    if found is not None:
        return found
    is_quoted = len(text) > 2 and text[0] == text[-1] and text[0] in "`'\""  # a path, most likely
    return text[1:-1].strip() if is_quoted else text


def last_number(text: str) -> int | float | None:
    """Return the last number of a text, with or without commas between thousands, or ``None`` without one of usable
    length.
    """
    last = None
    for match in _NUMBER.finditer(text):
        last = match
    if last is None or len(last[0]) > _MAX_DIGITS:
        return None
    digits = last[0].replace(",", "")
    return int(digits) if digits.lstrip("-").isdigit() else finite(float(digits))


def _structured(item: Item, text: str) -> Any:
    read = _READERS.get(item.form)
    if item.form in ("tube", "masks"):
        try:
            total = frame_count(item)
        except MediaError:  # the question could not be asked then; the reply is read for what it is
            total = None
        read = partial(tube_frames if item.form == "tube" else mask_frames, total=total)
    if read is None:
        return None
    return next((found for value in json_values(text) if (found := read(value)) is not None), None)


PREDICTION = "prediction"


def record(doc: Mapping[str, Any], reply: Any, settings: Settings) -> dict[str, Any]:
    """Read a reply as a record: ``id`` and ``prediction``, or for word problems steps and final answer.

    A text that would be taken for a path is inside an object (``REPLY``), because a model names no files except
    pictures that it made itself.
    """
    item = item_of(doc, settings)
    if item.facts.modality == LANGUAGE:
        extract = nlp_extraction.extract_fixed if settings.extraction == "fixed" else nlp_extraction.extract
        return {"id": item.id, **extract(stated_name(doc, item), stated_type(doc), item.raw, str(reply))}
    extracted = extract_media(item, reply)
    if item.form not in ("text", "number") and isinstance(extracted, str):
        made = {str(image.path) for image in getattr(reply, "images", ())}
        extracted = extracted if extracted in made else {REPLY: extracted}
    return {"id": item.id, PREDICTION: extracted}


def prediction(made: Mapping[str, Any]) -> Any:
    """Return the value of a record that is scored. ``prediction`` takes precedence over ``prediction_final``."""
    return made.get(PREDICTION, made.get("prediction_final"))
