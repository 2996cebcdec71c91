"""RefCOCO, RefCOCO+ and RefCOCOg: boxes of what an expression refers to, and expressions for marked regions."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval.api.outcome import Estimate
from lmms_eval.errors import ItemError, MediaError, TaskError
from lmms_eval.tasks._task_utils.captioning import scored_alike
from lmms_eval.tasks._task_utils.estimates import mean
from lmms_eval.tasks._task_utils.question import Doc, Settings

if TYPE_CHECKING:
    from PIL import Image

Box = Sequence[float]
Rows = Sequence[Mapping[str, Any]]
PIXELS = "pixels"
"""The setting ``box_scale`` of models that answer in pixels."""
_BOX_METRICS = (
    "refcoco_IoU", "refcoco_ACC@0.1", "refcoco_ACC@0.3", "refcoco_ACC@0.5", "refcoco_ACC@0.7", "refcoco_ACC@0.9",
    "refcoco_Center_ACC",
)  # fmt: skip
_CAPTION_METRICS = tuple(
    f"refcoco_{name}" for name in ("Bleu_4", "Bleu_3", "Bleu_2", "Bleu_1", "METEOR", "ROUGE_L", "CIDEr")
)
_NUMBER = r"(-?\d+(?:\.\d+)?)"
_BOX = re.compile(rf"\[\s*{_NUMBER},\s*{_NUMBER},\s*{_NUMBER},\s*{_NUMBER}\s*\]")
_NO_BOX = [0.0, 0.0, 0.0, 0.0]


def process_docs(docs: Any) -> Any:
    """Make a document of each expression: its box by its corners as shares of the picture's sides, and the sides.

    The pictures' bytes are shared among the documents of a picture, not copied.
    """
    import datasets
    import pyarrow as pa
    from datasets.table import InMemoryTable

    table = docs.with_format("arrow")[:]
    sides = [_sides(cell.as_py()) for cell in table.column("image")]
    answers = table.column("answer").to_pylist()
    places = [place for place, texts in enumerate(answers) for _ in texts]
    boxes = [_corners(box, *side) for box, side in zip(table.column("bbox").to_pylist(), sides, strict=True)]
    image = table.column("image")
    slices = [chunk for place in places for chunk in image.slice(place, 1).chunks]
    kept = table.drop_columns(["image", "answer", "bbox"]).take(places)
    made = {name: kept.column(name) for name in kept.column_names}
    made |= {
        "image": pa.chunked_array(slices, image.type),
        "answer": pa.array([text for texts in answers for text in texts], pa.string()),
        "bbox": pa.array([boxes[place] for place in places], pa.list_(pa.float64())),
        "image_width": pa.array([sides[place][0] for place in places], pa.int64()),
        "image_height": pa.array([sides[place][1] for place in places], pa.int64()),
    }
    features = {
        **docs.features,
        "answer": datasets.Value("string"),
        "bbox": datasets.Sequence(datasets.Value("float64")),
    }
    features |= dict.fromkeys(("image_width", "image_height"), datasets.Value("int64"))
    ordered = pa.table({name: made[name] for name in features})
    return datasets.Dataset(InMemoryTable(ordered), datasets.DatasetInfo(features=datasets.Features(features)))


def _sides(stored: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Width and height of a stored picture, upright; ``None`` if it cannot be read, which its prompt will report."""
    from lmms_eval.media.image import header

    if not stored or stored.get("bytes") is None:
        return None, None
    try:
        return header(stored["bytes"]).upright_size
    except MediaError:
        return None, None


def _corners(box: Box, width: int | None, height: int | None) -> list[float] | None:
    if not width or not height:
        return None
    x, y, wide, high = box
    return [x / width, y / height, (x + wide) / width, (y + high) / height]


def doc_to_region(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> list[Image.Image]:
    """Return the picture with the region's outline: its box in red, or its polygon (setting ``region: seg``) in white.

    Raises:
        ItemError: the columns hold no box, or no polygon.
    """
    from PIL import ImageDraw

    picture = doc["image"].convert("RGB").copy()
    drawing = ImageDraw.Draw(picture)
    is_polygon = (lmms_eval_specific_kwargs or {}).get("region") == "seg"
    column = "segmentation" if is_polygon else "bbox"
    try:
        if is_polygon:
            drawing.polygon(list(doc[column]))
        else:
            x, y, width, height = doc[column]
            drawing.rectangle([x, y, x + width, y + height], outline="red")
    except (TypeError, ValueError) as error:
        raise ItemError(f"refcoco: column {column!r} holds {doc[column]!r:.200}: it is no region ({error})") from error
    return [picture]


def doc_to_gold_caption(doc: Doc) -> str:
    """Return the first expression."""
    return str(doc["answer"][0])


def process_caption(doc: Doc, results: Sequence[str]) -> dict[str, Any]:
    """Return caption and expressions under each metric's name; the metrics are those of the whole split."""
    row = {"answer": doc["answer"], "pred": results[0].strip(), "ann_id": doc["question_id"]}
    return scored_alike(_CAPTION_METRICS, row)


def process_box(doc: Doc, results: Sequence[str], lmms_eval_specific_kwargs: Settings = None) -> dict[str, Any]:
    """Return the answer's box and the right one under each metric's name.

    Raises:
        ItemError: the size of the picture, and so the right box, is not known.
        TaskError: the setting ``box_scale`` is neither a positive number nor ``pixels``.
    """
    if doc["bbox"] is None:
        raise ItemError("refcoco: column 'image' holds no picture whose size can be read, so the box is not known")
    sides = _scale(doc, (lmms_eval_specific_kwargs or {}).get("box_scale", 1))
    box = [number / side for number, side in zip(parsed_box(results[0]), sides * 2, strict=True)]
    row = {"answer": doc["answer"], "pred": box, "ann_id": doc["question_id"], "bbox": list(doc["bbox"])}
    return dict.fromkeys(_BOX_METRICS, row)


def doc_to_gold_box(doc: Doc) -> str:
    """Return the box as its question asks for it."""
    return str(list(doc["bbox"]))


def parsed_box(answer: str) -> list[float]:
    """Return the first four numbers in brackets of an answer; four zeros without."""
    found = _BOX.search(answer)
    box = [float(number) for number in found.groups()] if found else _NO_BOX
    return box if all(map(math.isfinite, box)) else _NO_BOX


def _scale(doc: Doc, box_scale: Any) -> tuple[float, float]:
    """Return width and height of the picture in the units of the model's answers."""
    if box_scale == PIXELS:
        return doc["image_width"], doc["image_height"]
    try:
        scale = float(box_scale)
    except (TypeError, ValueError):
        scale = 0.0
    if not 0 < scale < math.inf:
        raise TaskError(f"refcoco: box_scale is {box_scale!r}; give a number such as 1 or 1000, or {PIXELS}")
    return scale, scale


def iou(first: Box, second: Box) -> float:
    """Return the area that two boxes share over the area that they cover; 0 if corners are swapped or it is empty.

    Args:
        first: x and y of the top left corner, then of the bottom right one.
        second: likewise.
    """
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    if width <= 0 or height <= 0:
        return 0.0
    shared = width * height
    return shared / (_area(first) + _area(second) - shared)


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _has_centre(row: Mapping[str, Any]) -> float:
    """1.0 if the centre of the answer's box lies in the right one, or on its border."""
    x1, y1, x2, y2 = row["pred"]
    left, top, right, bottom = row["bbox"]
    return float(left <= (x1 + x2) / 2 <= right and top <= (y1 + y2) / 2 <= bottom)


def _averaged(results: Rows, score: Callable[[Mapping[str, Any]], float]) -> Estimate:
    return mean([score(row) for row in results])


def _reaches(row: Mapping[str, Any], share: float) -> float:
    return float(iou(row["pred"], row["bbox"]) >= share)


aggregate_iou = functools.partial(_averaged, score=lambda row: iou(row["pred"], row["bbox"]))
aggregate_centre = functools.partial(_averaged, score=_has_centre)
(
    aggregate_accuracy_1,
    aggregate_accuracy_3,
    aggregate_accuracy_5,
    aggregate_accuracy_7,
    aggregate_accuracy_9,
) = (
    functools.partial(_averaged, score=functools.partial(_reaches, share=share)) for share in (0.1, 0.3, 0.5, 0.7, 0.9)
)
