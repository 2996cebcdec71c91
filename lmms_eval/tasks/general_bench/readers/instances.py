"""Objects as sets of pixels or points with labels and scores, and panoptic maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lmms_eval.tasks.general_bench.measures.mask_math import Runs, runs_of_box, runs_of_indices
from lmms_eval.tasks.general_bench.readers.boxes import Marked, four, marked, objects
from lmms_eval.tasks.general_bench.readers.labels import integers
from lmms_eval.tasks.general_bench.readers.masks import Size, mask
from lmms_eval.tasks.general_bench.readers.pictures import class_numbers, require_size
from lmms_eval.tasks.general_bench.readers.sides import Side, brief

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_INSTANCES = 1_000
MAX_RUNS = 20_000_000
"""Most runs of all instances of an answer together."""
MAX_INDICES = 5_000_000
"""Most indices in the lists of an answer together."""
CLASS_STEP = 1_000
"""An id of a panoptic map is ``class * 1000 + number``. Below 1000 it is the class itself."""


class Instances(Struct, frozen=True):
    """The objects of a picture or point cloud."""

    regions: tuple[Runs, ...]
    marked: Marked
    void: Runs | None = None
    """The unlabelled part of a panoptic map (id 0)."""

    @property
    def size(self) -> Size | None:
        """Size of the picture, or ``None`` if no region has one (no regions, or sets of indices)."""
        return next((region.size for region in self.regions if region.width), None)


def instances(value: object, side: Side, truth: Instances | None = None) -> Instances:
    """Read the objects of an answer.

    Args:
        value: list of ``{"mask": ...}`` (as ``masks.mask``), ``{"box": [x, y, w, h]}`` (a filled one) or
            ``{"indices": [...] or .npy path}`` (points), each with ``label`` and ``score`` if it has them; or a
            panoptic map: path of a picture or ``.npy`` array of ids, or ``{"map": path, "segments": [{"id": ...,
            "label": ...}, ...]}``.
        side: Prediction or reference.
        truth: The reference, for a prediction. If that has no object, masks are not looked at (all are wrong).

    Raises:
        DataError: anything else; ``UnreadableAnswer`` for a prediction, also for another size than the reference's.
    """
    if isinstance(value, str):
        return _panoptic(value, None, side, truth)
    if isinstance(value, Mapping):
        listed = objects(value.get("segments"), side, MAX_INSTANCES)
        return _panoptic(value.get("map"), [_object(entry, side) for entry in listed], side, truth)
    entries = [_object(entry, side) for entry in objects(value, side, MAX_INSTANCES)]
    if truth is not None and not truth.regions:
        return Instances((), marked(entries, side))
    total = sum(len(entry["indices"]) for entry in entries if isinstance(entry.get("indices"), list))
    if total > MAX_INDICES:
        raise side.refuse(f"lists {total} indices; at most {MAX_INDICES} are read (.npy files may hold more)")
    size = truth.size if truth is not None else None
    regions: list[Runs] = []
    for entry in entries:
        regions.append(_region(entry, side, size))
        if sum(len(region.starts) for region in regions) > MAX_RUNS:
            raise side.refuse(f"has instances of more than {MAX_RUNS} runs together")
    return Instances(tuple(regions), marked(entries, side))


def _object(entry: object, side: Side) -> Mapping[str, Any]:
    if not isinstance(entry, Mapping):
        raise side.refuse(f"has {brief(entry)} as an instance, not an object with a mask, box or indices")
    return entry


def _region(entry: Mapping[str, Any], side: Side, size: Size | None) -> Runs:
    if "indices" in entry:
        return runs_of_indices(_indices(entry["indices"], side))
    if "mask" in entry:
        return mask(entry["mask"], side, size)
    box = four(entry.get("box"), "box of an instance", side)
    if size is None:
        raise side.refuse("has a box as an instance without the size of the picture")
    return runs_of_box(box, *size)


def _indices(value: object, side: Side) -> NDArray[Any]:
    import numpy as np

    if isinstance(value, str):
        found = integers(side.file(value), side)
    elif isinstance(value, list) and all(type(index) is int and -1 <= index < 1 << 41 for index in value):
        found = np.array(value, dtype=np.int64)
    else:
        raise side.refuse(f"has {brief(value)} as indices, neither a list of numbers nor a path")
    if found.size and (int(found.min()) < 0 or int(found.max()) >= 1 << 40):
        raise side.refuse("has indices that are no places of points")
    return found.ravel()


def _panoptic(
    value: object, segments: Sequence[Mapping[str, Any]] | None, side: Side, truth: Instances | None
) -> Instances:
    import numpy as np

    path = side.file(value)
    ids = integers(path, side) if path.suffix.casefold() == ".npy" else class_numbers(path, side)
    ids = ids.reshape(1, -1) if ids.ndim == 1 else ids  # of the points of a cloud
    if ids.ndim != 2 or not ids.size or int(ids.min()) < 0:
        raise side.refuse(f"names {path.name!r}, which is no map of ids from 0 on")
    if int(ids.max()) >= 1 << 40:
        raise side.refuse(f"names {path.name!r}, which holds ids beyond 40 bits")
    height, width = ids.shape
    if truth is not None and truth.size is not None:
        require_size((height, width), truth.size, side)
    line = ids.astype(np.int64).T.ravel()
    starts = np.concatenate([[0], np.flatnonzero(np.diff(line)) + 1]).astype(np.int64)
    ends = np.append(starts[1:], line.size)
    known, owner = np.unique(line[starts], return_inverse=True)
    labels = _labels(known, segments, side)
    order = np.argsort(owner, kind="stable")
    borders = np.searchsorted(owner[order], np.arange(len(known) + 1))
    found = {
        int(number): Runs(height, width, starts[order[low:high]], ends[order[low:high]])
        for number, low, high in zip(known, borders[:-1], borders[1:], strict=True)
    }
    void = found.pop(0, None)
    entries = [{"label": labels[number]} for number in found]
    return Instances(tuple(found.values()), marked(entries, side), void)


def _labels(known: NDArray[Any], segments: Sequence[Mapping[str, Any]] | None, side: Side) -> dict[int, Any]:
    """Return the labels of all ids except 0."""
    ids = [int(number) for number in known if number]
    if len(ids) > MAX_INSTANCES:
        raise side.refuse(f"holds {len(ids)} segments; at most {MAX_INSTANCES} are read")
    if segments is None:
        return {number: number // CLASS_STEP if number >= CLASS_STEP else number for number in ids}
    named = {segment.get("id"): segment.get("label") for segment in segments if type(segment.get("id")) is int}
    unnamed = [number for number in ids if named.get(number) is None]
    if unnamed:
        raise side.refuse(f"lists no label for the segment {unnamed[0]} of its map")
    return {number: named[number] for number in ids}
