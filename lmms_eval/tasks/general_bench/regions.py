"""Masks of an item's reference and of an answer to it, for people to look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import LmmsEvalError
from lmms_eval.tasks.general_bench.data.documents import item_in
from lmms_eval.tasks.general_bench.measures.mask_math import Runs, runs_of_box
from lmms_eval.tasks.general_bench.readers.boxes import Marked
from lmms_eval.tasks.general_bench.readers.instances import Instances, instances
from lmms_eval.tasks.general_bench.readers.masks import Size, mask
from lmms_eval.tasks.general_bench.readers.sides import Side, prediction_of, reference_of
from lmms_eval.tasks.general_bench.settings import Settings

MaskForm = Literal["mask", "masks", "instances"]
MASK_FORMS: tuple[MaskForm, ...] = get_args(MaskForm)
"""Forms of answers that are masks in pixels of a picture."""

MOST = 64
"""Objects of a list that are read."""


@dataclass(frozen=True, slots=True)
class Regions:
    """The masks of one side over one picture, all of one size."""

    of: Literal["reference", "answer"]
    masks: tuple[Runs, ...]
    labels: tuple[str, ...]
    """Of each mask; empty where it has none."""
    frame: int | None = None
    """Number of the video's frame; ``None`` of a picture."""

    @property
    def size(self) -> Size:
        """Height and width."""
        return self.masks[0].size


def regions_of(
    doc: Mapping[str, Any], folder: Path, prediction: Any, picture: Size | None = None, frames: Iterable[int] = ()
) -> list[Regions]:
    """List the masks of a document's reference and of a prediction, each side as far as scoring reads it.

    Args:
        doc: As ``data.documents`` made it; of any other, and of other forms, there are no masks.
        folder: The task's folder.
        prediction: The JSON value that is scored, a path of a picture being absolute; ``None`` for no answer.
        picture: Height and width of the picture, for an answer without reference.
        frames: Numbers of the video's frames that are looked at.
    """
    try:
        item = item_in(folder, doc, Settings())
    except (LmmsEvalError, NotEvaluated, ValueError, TypeError, KeyError, RecursionError):  # not as ``data`` made it
        return []
    if item.form not in MASK_FORMS:
        return []
    found: list[Regions] = []
    for frame in frames if item.form == "masks" else (None,):
        size = None
        for side, value in ((reference_of(item), item.reference), (prediction_of(item), prediction)):
            regions = _regions(side, value if frame is None else _at(value, frame), size)
            size = regions.size if regions is not None else picture
            found += [replace(regions, frame=frame)] if regions is not None else []
    return found


def _at(value: Any, frame: int) -> Any:
    """Return what a list of masks says of a frame."""
    return value[frame] if isinstance(value, list) and 0 <= frame < len(value) else None


def _regions(side: Side, value: Any, size: Size | None) -> Regions | None:
    """Read one side; ``None`` where it has no mask or cannot be read, which scoring tells of."""
    of: Literal["reference", "answer"] = "answer" if side.predicted else "reference"
    try:
        if value is None:
            return None
        if side.item.form != "instances":
            return Regions(of, (mask(value, side, size),), ("",))
        listed = value[:MOST] if isinstance(value, list) else value
        found = instances(listed, side, None if size is None else _of_size(size))
    except LmmsEvalError:
        return None
    labels = found.marked.labels or ("",) * len(found.regions)
    return Regions(of, found.regions, labels) if found.size is not None else None


def _of_size(size: Size) -> Instances:
    import numpy as np

    return Instances((runs_of_box((0, 0, 0, 0), *size),), Marked(None, np.ones(1)))
