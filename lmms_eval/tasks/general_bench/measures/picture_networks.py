"""Metrics of pictures and 3D objects that networks compute: CLIP scores, FID, and the class of a generated picture.

A CLIP score here is 100 times the plain cosine, from -100 to 100, neither cut at 0 nor multiplied by 2.5: the
workbook's specialists reach 19 to 26 for text and picture, which is the size of that cosine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import Item
from lmms_eval.tasks.general_bench.measures import embeddings, seen
from lmms_eval.tasks.general_bench.measures.contract import Context, Measure, State, mean
from lmms_eval.tasks.general_bench.networks.base import not_evaluated
from lmms_eval.tasks.general_bench.networks.pictures import B32, classifier, clip, inception
from lmms_eval.tasks.general_bench.readers.sides import prediction_of

Floats = npt.NDArray[np.float32]
_LABEL_KEYS = ("label", "class", "category", "class_name", "text", "answer")
_CLIP = "CLIP ViT-B/32 (torch, transformers; weights `clip-vit-base-patch32`), or features of pictures and texts"


def picture_score(prediction: Any, item: Item, context: Context) -> State:
    """Return 100 times the cosine of the predicted picture and the item's text."""
    return embeddings.similarity(_predicted(prediction, item, context), _text(item, context), item)


def render_score(prediction: Any, item: Item, context: Context) -> State:
    """Return 100 times the mean cosine of views of a 3D object and the text or picture that it is made from."""
    rows = embeddings.predicted_rows(
        prediction, item, lambda: clip(B32, context, item).pictures(seen.views(prediction, item))
    )
    if "Image to 3D" not in item.facts.name:
        return embeddings.similarity(rows, _text(item, context), item)
    given = embeddings.reference_rows(
        item, context, lambda: clip(B32, context, item).pictures(seen.input_pictures(item))
    )
    return embeddings.similarity(rows, given, item)


def image_score(prediction: Any, item: Item, context: Context) -> State:
    """Return 100 times the mean cosine of the predicted picture and the reference pictures."""
    given = embeddings.reference_rows(
        item, context, lambda: clip(B32, context, item).pictures(seen.reference_pictures(item.reference, item))
    )
    return embeddings.similarity(_predicted(prediction, item, context), given, item)


def inception_pair(prediction: Any, item: Item, context: Context) -> State:
    """Return the InceptionV3 features of the predicted and of the reference picture."""
    rows, given = embeddings.predicted_features(prediction, item), embeddings.reference_features(item, context)
    if rows is None:
        rows = inception(context, item).pictures([seen.predicted_picture(prediction, item)])
    if given is None:
        given = inception(context, item).pictures(seen.reference_pictures(item.reference, item)[:1])
    return embeddings.pair_state(rows, given, item)


def motion_pair(prediction: Any, item: Item, context: Context) -> State:
    """Return the features of the predicted and of the reference motion, both from files."""
    rows, given = embeddings.predicted_features(prediction, item), embeddings.reference_features(item, context)
    if rows is None or given is None:
        missing = "of the prediction" if rows is None else "of the reference"
        raise not_evaluated(
            item,
            f"features {missing} by a motion encoder (no package of one is maintained)",
            'give predictions as {"features": "FILE.npy"} and a folder of the references\' with `reference_features`',
        )
    return embeddings.pair_state(rows, given, item)


def class_hit(prediction: Any, item: Item, context: Context) -> State:
    """Return 100 if the predicted picture is classified as the item's class, else 0."""
    given = prediction.get("label") if isinstance(prediction, Mapping) else None
    output = item.raw.get("output")
    labels = [output.get(key) for key in _LABEL_KEYS] if isinstance(output, Mapping) else []
    texts = (one for one in labels if isinstance(one, str | int) and not isinstance(one, bool))
    wanted = next((one for one in texts if str(one).strip()), None)
    if isinstance(given, str | int) and wanted is not None:
        return 100.0 if _fold(given) == _fold(wanted) else 0.0
    network = classifier(context, item)
    found = network.classify(seen.predicted_picture(prediction, item))
    if wanted is None:
        return 100.0 if found == network.classify(seen.reference_pictures(item.reference, item)[0]) else 0.0
    if (number := network.find(wanted)) is None:
        raise DataError(f"{item.where}: the classifier has no class {wanted!r:.80}")
    return 100.0 if found == number else 0.0


def _predicted(prediction: Any, item: Item, context: Context) -> Floats:
    rows = embeddings.predicted_features(prediction, item)
    if rows is not None:
        return embeddings.one_row(rows, item)[None]
    network = clip(B32, context, item)
    with prediction_of(item).reading():
        return network.pictures([seen.predicted_picture(prediction, item)])


def _text(item: Item, context: Context) -> Floats:
    return embeddings.reference_rows(item, context, lambda: clip(B32, context, item).texts([seen.wanted_text(item)]))


def _fold(label: str | int) -> str:
    return " ".join(str(label).casefold().replace("_", " ").split())


MEASURES: tuple[Measure, ...] = (
    Measure(
        "clip_score", "image", picture_score, mean, needs=_CLIP,
        checked="cosines computed by torch from the same small network; the network itself was not run here",
    ),
    Measure(
        "clip_score/render", "mesh", render_score, mean,
        needs=f"{_CLIP}; rendered views, else four plain views of points are drawn",
        checked="cosines computed by torch from the same small network; the authors' renderer is not known",
    ),
    Measure(
        "clip_image_score", "image", image_score, mean, needs=_CLIP,
        checked="cosines computed by torch from the same small network; the network itself was not run here",
    ),
    Measure(
        "fid", "image", inception_pair, embeddings.frechet, is_costly=True,
        needs="torch and the FID InceptionV3 (weights `inception-v3-fid`), or its features of pictures",
        checked="network: torch-fidelity's over the same random weights; distance: the recorded vectors",
    ),
    Measure(
        "fid/motion", "motion", motion_pair, embeddings.frechet, is_costly=True,
        needs="features of motions from an encoder run elsewhere", checked="distance: the recorded vectors",
    ),
    Measure(
        "accuracy/eeg", "image", class_hit, mean, is_mean=True,
        needs="an ImageNet classifier (torch, transformers; weights `vit-base-patch16-224`), or predicted labels",
        checked="logits computed by torch from the same small network; the authors' classifier is not known",
    ),
)  # fmt: skip
