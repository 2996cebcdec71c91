"""Boxes, polygons, objects and triplets as models write them, converted to the form of ``prediction.json``.

Each function takes a JSON value and returns ``None`` if it is no answer of its form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lmms_eval.tasks.general_bench.readers.sides import finite

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
    """Read ``[subject, predicate, object]`` from lists or from objects with these keys. A single one needs no list
    around it.
    """
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
