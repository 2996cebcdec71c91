"""Masks and key points of an item's reference and of an answer to it, for display."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import LmmsEvalError
from lmms_eval.tasks.general_bench.data.documents import item_in
from lmms_eval.tasks.general_bench.items import Item
from lmms_eval.tasks.general_bench.measures.mask_math import Runs, runs_of_box
from lmms_eval.tasks.general_bench.readers.regions import Instances, Marked, Size, instances, key_points, mask
from lmms_eval.tasks.general_bench.readers.sides import Side, prediction_of, reference_of
from lmms_eval.tasks.general_bench.settings import Settings

MaskForm = Literal["mask", "masks", "instances"]
MASK_FORMS: tuple[MaskForm, ...] = get_args(MaskForm)
"""Forms of answers that are pixel masks of a picture."""

MOST = 64
"""Most objects of a list that are read."""


class Regions(Struct, frozen=True):
    """The masks of one side for one picture, all of one size."""

    of: Literal["reference", "answer"]
    masks: tuple[Runs, ...]
    labels: tuple[str, ...]
    """Labels of the masks, empty for a mask without a label."""
    frame: int | None = None
    """Number of the video's frame, or ``None`` for a picture."""

    @property
    def size(self) -> Size:
        """Height and width."""
        return self.masks[0].size


class Bodies(Struct, frozen=True):
    """The key points of one side."""

    of: Literal["reference", "answer"]
    points: tuple[tuple[tuple[float, float], ...], ...]
    """Labelled points of each body, in pixels of the picture."""
    labels: tuple[str, ...]
    """Labels of the bodies, empty for a body without a label."""


def bodies_of(doc: Mapping[str, Any], folder: Path, prediction: Any) -> list[Bodies]:
    """List the key points of a document's reference and of a prediction, as ``regions_of`` does for masks."""
    item = _item(doc, folder)
    if item is None or item.form != "instances":
        return []
    listed: list[Bodies] = []
    for side, value in ((reference_of(item), item.reference), (prediction_of(item), prediction)):
        with contextlib.suppress(LmmsEvalError):  # scoring reports it
            found, _, marked = key_points(value[:MOST] if isinstance(value, list) else value, side)
            points = tuple(tuple((x, y) for x, y, is_labelled in body if is_labelled) for body in found.tolist())
            if any(points):
                listed.append(Bodies(side.of, points, marked.labels or ("",) * len(points)))
    return listed


def regions_of(
    doc: Mapping[str, Any], folder: Path, prediction: Any, picture: Size | None = None, frames: Iterable[int] = ()
) -> list[Regions]:
    """List the masks of a document's reference and of a prediction, as far as scoring reads each side.

    Args:
        doc: A document of ``data.documents``; other documents, and other forms, have no masks.
        folder: The task's folder.
        prediction: The JSON value that is scored, a path of a picture being absolute; ``None`` for no answer.
        picture: Height and width of the picture, for an answer without reference.
        frames: Numbers of the video's frames that are looked at.
    """
    item = _item(doc, folder)
    if item is None or item.form not in MASK_FORMS:
        return []
    found: list[Regions] = []
    for frame in frames if item.form == "masks" else (None,):
        size = None
        for side, value in ((reference_of(item), item.reference), (prediction_of(item), prediction)):
            if frame is not None:
                value = value[frame] if isinstance(value, list) and 0 <= frame < len(value) else None
            regions = _regions(side, value, size)
            size = regions.size if regions is not None else picture
            found += [replace(regions, frame=frame)] if regions is not None else []
    return found


def _item(doc: Mapping[str, Any], folder: Path) -> Item | None:
    try:
        return item_in(folder, doc, Settings())
    except (LmmsEvalError, NotEvaluated, ValueError, TypeError, KeyError, RecursionError):  # not a document of ``data``
        return None


def _regions(side: Side, value: Any, size: Size | None) -> Regions | None:
    """Read one side, or return ``None`` if it has no mask or cannot be read, which scoring reports."""
    import numpy as np

    of = side.of
    try:
        if value is None:
            return None
        if side.item.form != "instances":
            return Regions(of, (mask(value, side, size),), ("",))
        listed = value[:MOST] if isinstance(value, list) else value
        truth = None if size is None else Instances((runs_of_box((0, 0, 0, 0), *size),), Marked(None, np.ones(1)))
        found = instances(listed, side, truth)
    except LmmsEvalError:
        return None
    labels = found.marked.labels or ("",) * len(found.regions)
    return Regions(of, found.regions, labels) if found.size is not None else None
