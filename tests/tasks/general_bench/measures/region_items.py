"""Items of region tasks for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from lmms_eval.tasks.general_bench.facts import tasks
from lmms_eval.tasks.general_bench.items import Form, Item
from lmms_eval.tasks.general_bench.measures import masks
from lmms_eval.tasks.general_bench.measures.contract import Context, Measure

ALL = {measure.name: measure for measure in masks.MEASURES}
CONTEXT = Context()


def item(reference: Any, folder: Path = Path("nowhere"), form: Form = "boxes", **raw: Any) -> Item:
    return Item(1, tasks()[0], form, "", (), reference, folder, folder, raw)


def value(measure: Measure, *pairs: tuple[Any, Item]) -> float:
    """The task's value; a prediction ``None`` is an unanswered item."""
    states = []
    for prediction, one in pairs:
        if prediction is None:
            assert measure.unanswered is not None
            states.append(measure.unanswered(one, CONTEXT))
        else:
            states.append(measure.state(prediction, one, CONTEXT))
    return measure.value(states)


def write_png(path: Path, array: np.ndarray) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)
    return path.name


def counts_of(mask: np.ndarray) -> dict[str, Any]:
    """Run lengths of a mask as COCO's list, counted pixel by pixel."""
    counts, current = [0], False
    for pixel in mask.T.ravel():
        if bool(pixel) != current:
            counts.append(0)
            current = bool(pixel)
        counts[-1] += 1
    return {"size": list(mask.shape), "counts": counts}
