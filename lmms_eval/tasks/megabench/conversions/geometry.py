"""Boxes (x1, y1, x2, y2) and points in texts, and their overlap."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from lmms_eval.tasks.megabench.conversions.literals import ConversionError, LiteralError, read_literal

Box = Sequence[float]
Point = tuple[float, float]


def is_number(value: object) -> bool:
    """Return whether a value is an integer, a float or a truth value."""
    return isinstance(value, int | float)


def _number_rows(values: Iterable[Any], width: int) -> list[Any]:
    """Return the elements that are lists or tuples of ``width`` numbers."""
    return [
        row for row in values if isinstance(row, list | tuple) and len(row) == width and all(is_number(x) for x in row)
    ]


def str_to_bboxes(text: Any) -> list[Any]:
    """Read the boxes in a Python literal or JSON text: one flat box or a list of boxes; malformed boxes are left out.

    Empty for anything but a text. Raises ``ConversionError`` for literals without a length or an order (a number,
    ``None``, a set of four, a dictionary of four entries).
    """
    value = _read_rows(text, "any")
    try:
        is_flat = len(value) == 4 and is_number(value[0])
    except (TypeError, KeyError):
        raise ConversionError(f"a {type(value).__name__} holds no boxes") from None
    if is_flat:
        return _number_rows([value], 4)
    return _number_rows(value, 4) if isinstance(value, list | tuple) else []


def str_to_coords(text: Any) -> list[Any]:
    """Read the points in a Python literal or JSON text of any container of points; other elements are left out.

    A dictionary gives its keys, a set its items in Python's order. Raises ``LiteralError`` for Python expressions that
    are not literals, ``ConversionError`` for literals without items (a number, ``None``).
    """
    value = _read_rows(text, "syntax")
    if not isinstance(value, Iterable):
        raise ConversionError(f"a {type(value).__name__} holds no points")
    return _number_rows(value, 2)


def _read_rows(text: Any, problem: Literal["any", "syntax"]) -> Any:
    """Read a Python literal, or JSON if the text has this problem as a literal; empty for anything but a text."""
    if not isinstance(text, str):
        return []
    try:
        return read_literal(text)
    except LiteralError as error:
        if problem not in ("any", error.problem):
            raise
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return []


def _tag_contents(text: str, tag: str) -> Iterator[str]:
    """Return the texts between ``<tag>`` and the next ``</tag>`` on the same line."""
    opening, closing = f"<{tag}>", f"</{tag}>"
    for line in text.split("\n"):
        end = 0
        while True:
            start = line.find(opening, end)
            stop = line.find(closing, start + len(opening)) if start >= 0 else -1
            if stop < 0:
                break
            yield line[start + len(opening) : stop]
            end = stop + len(closing)


def _floats(text: str, count: int) -> tuple[float, ...] | None:
    """Read ``count`` comma-separated numbers; ``None`` if that fails."""
    parts = text.split(",")
    if len(parts) != count:
        return None
    try:
        return tuple(float(part.strip()) for part in parts)
    except ValueError:
        return None


def parse_point_xml(text: Any) -> Point | None:
    """Read the point of a text with exactly one ``<point>x, y</point>``; ``None`` otherwise."""
    if not isinstance(text, str):
        return None
    contents = list(_tag_contents(text, "point"))
    numbers = _floats(contents[0], 2) if len(contents) == 1 else None
    return None if numbers is None else (numbers[0], numbers[1])


def parse_boxes_xml(text: Any) -> list[tuple[float, ...]]:
    """Read every ``<box>x1, y1, x2, y2</box>`` of the text; tags without four numbers are left out."""
    if not isinstance(text, str):
        return []
    found = (_floats(content, 4) for content in _tag_contents(text, "box"))
    return [numbers for numbers in found if numbers is not None]


def iou(first: Box, second: Box) -> float:
    """Compute the intersection over union of two boxes. Corners are not sorted; a union of zero or less gives 0."""
    width = max(0, min(first[2], second[2]) - max(first[0], second[0]))
    height = max(0, min(first[3], second[3]) - max(first[1], second[1]))
    shared = width * height
    union = _area(first) + _area(second) - shared
    return shared / union if union > 0 else 0.0


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def best_ious(predicted: Sequence[Box], truth: Sequence[Box]) -> list[float]:
    """Return for each predicted box the best overlap with any true box; 0 without one."""
    return [max((iou(box, other) for other in truth), default=0.0) for box in predicted]
