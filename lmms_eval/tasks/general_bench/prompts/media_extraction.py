"""Replies of models to predictions: the JSON value that stands in ``prediction.json``.

Nothing is guessed: coordinates that look as if they were shares of the picture stay as they are. A reply that is not in
the form its task asks for is kept as its text, so that scoring says why it cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from lmms_eval.api.interleaved import InterleavedText
from lmms_eval.errors import MediaError
from lmms_eval.tasks.general_bench.items import Form, Item
from lmms_eval.tasks.general_bench.prompts.json_replies import json_values
from lmms_eval.tasks.general_bench.prompts.key_frames import mask_frames, tube_frames
from lmms_eval.tasks.general_bench.prompts.media import frame_count
from lmms_eval.tasks.general_bench.prompts.reply_shapes import (
    boxes,
    entries,
    instances,
    polygons,
    rows,
    triplets,
)
from lmms_eval.tasks.general_bench.prompts.text_tasks import LOWER_CASED, is_cut_at_tag
from lmms_eval.tasks.general_bench.readers.sides import finite

_NUMBER = re.compile(r"(?<![\w.])-?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][+-]?\d{1,3})?")
_MAX_DIGITS = 18
_PICTURED: frozenset[Form] = frozenset(
    {"image", "mask", "labels", "instances", "saliency", "map", "alpha", "depth", "flow", "normals"}
)
"""Forms that a picture made by the model can be."""
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
"""The reader that makes a prediction of a JSON value; ``None`` where the value is no answer."""


def extract(item: Item, reply: str) -> Any:
    """The prediction that a reply makes, as a JSON value in the item's form; the reply's text where it makes none.

    Args:
        item: the question's item.
        reply: the model's answer, trimmed or not; an ``InterleavedText`` may carry pictures, of which the last is the
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
    """The last number of a text, thousands parted by commas or not; ``None`` if there is none of usable length."""
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
