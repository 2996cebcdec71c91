"""Boxes and points in answers and references, where the metric says that they are such, as shares of the picture."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from lmms_eval.results.run_reader.sample import finite

MOST = 64
"""Shapes of an answer that are drawn."""
_IN_BRACKETS = re.compile(r"[(\[]([^()\[\]]{1,200})[)\]]")
_IN_TAGS = re.compile(r"<(?:point|box)>([^<>]{1,200})</(?:point|box)>")
_FRAME = re.compile(r"Frame (\d{1,6}):")
_LONGEST = 20_000

Shape = dict[str, Any]
"""``of`` (``answer``, ``reference``), ``at`` (left, top, right, bottom; of a point left and top) or ``src`` (a mask),
``label``, and ``medium``, the number of the medium below it where that is not the last one."""


def shapes_of(sample: Mapping[str, Any], width: float | None, height: float | None) -> list[Shape]:
    """List the shapes of a sample's line; ``width`` and ``height`` are those of its picture in pixels.

    MEGA-Bench names the rule of each field of an answer: those of boxes and points take shares of the picture.
    General-Bench names the form of an answer: boxes are left, top, width and height in pixels.
    """
    found = [*_of_fields(sample)]
    forms = [value.get("form") for value in sample.values() if isinstance(value, Mapping) and "measure" in value]
    if width and height and ("boxes" in forms or "tube" in forms):
        for name, boxes in (("reference", _literal(sample.get("target"), list)), ("answer", _answered(sample))):
            if "boxes" in forms:
                found += _in_pixels(name, boxes[:MOST], width, height)
            for frame, medium in frames_in(sample).items() if "tube" in forms else ():
                drawn = _in_pixels(name, boxes[frame : frame + 1], width, height)
                found += [{**box, "medium": medium} for box in drawn]
    return found


def prediction_of(sample: Mapping[str, Any]) -> Any:
    """Return the value of JSON that General-Bench has read from an answer; ``None`` where none is noted."""
    noted = sample.get("predictions")
    record = noted.get("record") if isinstance(noted, Mapping) else None
    return record.get("prediction") if isinstance(record, Mapping) else None


def _answered(sample: Mapping[str, Any]) -> list[Any]:
    read = prediction_of(sample)
    return read if isinstance(read, list) else _literal(sample.get("filtered_resps"), list)


def frames_in(sample: Mapping[str, Any]) -> dict[int, int]:
    """Tell by the number of a video's frame the number of the medium that shows it.

    General-Bench writes a frame's number before its picture where answers speak of frames.
    """
    found: dict[int, int] = {}
    messages = sample.get("messages")
    if isinstance(messages, list) and messages and isinstance(messages[0], list):  # of repeats, which show the same
        messages = messages[0]
    number: int | None = None
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, Mapping) else None
        for part in content if isinstance(content, list) else ():
            if not isinstance(part, Mapping):
                continue
            if number is not None and isinstance(part.get("media"), int):
                found[number] = part["media"]
            told = _FRAME.fullmatch(str(part.get("text", "")))
            number = int(told[1]) if told else None
    return found


def _of_fields(sample: Mapping[str, Any]) -> Iterator[Shape]:
    """Read the fields of MEGA-Bench whose rule takes boxes or points."""
    doc, submission = sample.get("doc"), sample.get("submission")
    if not isinstance(doc, Mapping) or not isinstance(submission, Mapping):
        return
    rules = _literal(doc.get("metric_info")).get("field_score_function")
    right = submission.get("correct_answer")
    if not isinstance(rules, Mapping) or not isinstance(right, Mapping):
        return
    fields = [field for field, rule in rules.items() if "bbox" in str(rule)]
    said = _literal(submission.get("response"))
    context = submission.get("eval_context")
    bounds = context.get("bounding_boxes") if isinstance(context, Mapping) else None
    for field in fields:
        # A point has no box of its own: it is right within any of those of the question.
        yield from _shares("reference", bounds if "point" in str(rules[field]) else right.get(field))
        # An answer of one field is the text itself; one of several fields names them.
        yield from _shares("answer", said.get(field, submission.get("response") if len(rules) == 1 else None))


def _shares(of: str, value: Any) -> Iterator[Shape]:
    text = str(value)[:_LONGEST] if value is not None else ""
    groups = _IN_TAGS.findall(text) or _IN_BRACKETS.findall(text)
    for group in groups[:MOST]:
        numbers = [_number(part) for part in group.split(",")]
        if len(numbers) in (2, 4) and all(number is not None and 0 <= number <= 1 for number in numbers):
            yield {"of": of, "at": numbers, "label": ""}


def _in_pixels(of: str, boxes: Sequence[Any], width: float, height: float) -> Iterator[Shape]:
    for entry in boxes:
        box = [*_four(entry.get("box")), entry.get("label", "")] if isinstance(entry, Mapping) else entry
        if not isinstance(box, list | tuple) or len(box) < 4:
            continue
        left, top, wide, high = (finite(number) for number in box[:4])
        if left is None or top is None or wide is None or high is None:
            continue
        at = [left / width, top / height, (left + wide) / width, (top + high) / height]
        yield {"of": of, "at": at, "label": str(box[4])[:80] if len(box) > 4 else ""}


def _four(box: Any) -> list[Any]:
    return box if isinstance(box, list) else []


def _literal(value: Any, kind: type[Any] = dict) -> Any:
    """Read a text of JSON, else of Python literals; something empty of that kind where it is neither."""
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
