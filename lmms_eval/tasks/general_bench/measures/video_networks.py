"""Metrics of generated videos that networks compute (specification §5.3 and §5.4).

Where the toolkit pools over all frames or frame pairs of a task, and not over videos, so do these metrics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import Item, UnreadableAnswer
from lmms_eval.tasks.general_bench.measures import video_kit
from lmms_eval.tasks.general_bench.measures.contract import Context, Measure, State, mean
from lmms_eval.tasks.general_bench.measures.embeddings import (
    consistency,
    cosines,
    frechet,
    pair_state,
    pooled_percent,
    predicted_features,
    predicted_rows,
    reference_features,
    reference_rows,
    similarity,
)
from lmms_eval.tasks.general_bench.measures.seen import (
    frames_of,
    input_pictures,
    input_text,
    predicted_frames,
    wanted_text,
)
from lmms_eval.tasks.general_bench.measures.video_kit import read_small_json
from lmms_eval.tasks.general_bench.networks.pictures import B32, KONIQ, L14, SPAQ, clip, musiq, ratings
from lmms_eval.tasks.general_bench.networks.videos import video_network
from lmms_eval.tasks.general_bench.readers.sides import predicted_path, prediction_of, reference_path

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from lmms_eval.tasks.general_bench.networks.base import Network

    Floats = npt.NDArray[np.float32]

MAX_SCORES = 20_000
_LONGEST = 512
"""Longest side of a frame in pixels, for the quality of generated videos."""
_TOP_RATING = 10.0
_CLIP = "CLIP ViT-B/32 (torch, transformers; weights `clip-vit-base-patch32`), or features of frames"
_CHECKED = "by hand from vectors of a small network; the network itself was not run here"


def background(prediction: Any, item: Item, context: Context) -> State:
    """Return the background consistency: the similarity of the frames' CLIP vectors."""
    return consistency(_clip_rows(prediction, item, context), item)


def subject(prediction: Any, item: Item, context: Context) -> State:
    """Return the subject consistency: the similarity of the frames' DINO vectors."""
    return consistency(video_kit.subject_rows(prediction, item, context), item)


def style(prediction: Any, item: Item, context: Context) -> State:
    """Return the sum over the frames of the cosine with the style (``input.style``, else the whole prompt), and their
    number.
    """
    rows = _clip_rows(prediction, item, context)
    given = reference_rows(
        item, context, lambda: clip(B32, context, item).texts([input_text(item, "style") or wanted_text(item)])
    )
    return [similarity(rows, given, item) / 100 * len(rows), len(rows)]


def reference_style(prediction: Any, item: Item, context: Context) -> State:
    """Return 100 times the mean cosine of the frames and the pictures that show the style."""
    rows = _clip_rows(prediction, item, context)
    given = reference_rows(item, context, lambda: clip(B32, context, item).pictures(input_pictures(item)))
    return similarity(rows, given, item)


def frame_accuracy(prediction: Any, item: Item, context: Context) -> State:
    """Return the percentage of frames that are nearer to the target's prompt than to the source's."""
    rows = _clip_rows(prediction, item, context)
    given = reference_features(item, context)
    if given is None:
        prompts = [input_text(item, key) for key in ("source_prompt", "target_prompt")]
        if not all(prompts):
            raise DataError(f"{item.where}: `input.source_prompt` and `input.target_prompt` are needed")
        given = clip(B32, context, item).texts(prompts)
    if len(given) != 2:
        raise DataError(f"{item.where}: features of the source's and the target's prompt are needed, in two rows")
    found = cosines(rows, given, item)
    return 100.0 * float((found[:, 1] > found[:, 0]).sum()) / len(found)


def aesthetics(prediction: Any, item: Item, context: Context) -> State:
    """Return the mean aesthetic rating of the frames, scaled so that the top rating 10 is 100."""
    rows = _clip_rows(prediction, item, context, L14)
    return 100 * mean(ratings(rows, context, item)) / _TOP_RATING


def quality(prediction: Any, item: Item, context: Context) -> State:
    """Return the mean MUSIQ quality of the frames. Generated videos use the weights of SPAQ and frames of at most 512
    pixels, as in the toolkit's imaging quality. Super-resolved videos use the weights of KonIQ at full size.
    """
    given = prediction.get("scores") if isinstance(prediction, Mapping) else None
    if given is not None:
        with prediction_of(item).reading():
            values = read_small_json(predicted_path(given, item)) if isinstance(given, str) else given
        if not isinstance(values, list) or not 0 < len(values) <= MAX_SCORES:
            raise UnreadableAnswer(f"{item.where}: scores must be a list of 1 to {MAX_SCORES} numbers")
        if not all(isinstance(one, int | float) and not isinstance(one, bool) and 0 <= one <= 100 for one in values):
            raise UnreadableAnswer(f"{item.where}: scores of frames are numbers from 0 to 100")
        return mean(values)
    is_toolkit = "Text to Video" in item.facts.name
    network = musiq(SPAQ if is_toolkit else KONIQ, context, item)
    return mean(network.pictures(predicted_frames(prediction, item), _LONGEST if is_toolkit else None))


def video_pair(prediction: Any, item: Item, context: Context) -> State:
    """Return the r3d_18 features of the predicted and of the reference video."""
    rows, given = predicted_features(prediction, item), reference_features(item, context)
    if rows is None:
        rows = video_network(context, item).video(predicted_frames(prediction, item))[None]
    if given is None:
        network = video_network(context, item)
        given = network.video(frames_of(reference_path(item.reference, item)))[None]
    return pair_state(rows, given, item)


def _clip_rows(prediction: Any, item: Item, context: Context, network: Network = B32) -> Floats:
    return predicted_rows(
        prediction, item, lambda: clip(network, context, item).pictures(predicted_frames(prediction, item))
    )


MEASURES: tuple[Measure, ...] = (
    Measure("clip_score/background", "video", background, pooled_percent, needs=_CLIP, checked=_CHECKED),
    Measure("clip_score/style", "video", style, pooled_percent, needs=f"{_CLIP} and text", checked=_CHECKED),
    Measure("clip_style_score", "video", reference_style, mean, needs=f"{_CLIP} and pictures", checked=_CHECKED),
    Measure(
        "frame_accuracy_clip", "video", frame_accuracy, mean, is_mean=True, needs=f"{_CLIP} and both prompts",
        checked=_CHECKED,
    ),
    Measure(
        "aesthetic_score", "video", aesthetics, mean, is_mean=True,
        needs="CLIP ViT-L/14 (weights `clip-vit-large-patch14`), or its features of frames, and LAION's linear layer "
        "(weights `laion-aesthetic-vit-l-14-linear`)", checked=_CHECKED,
    ),
    Measure(
        "dino_score", "video", subject, pooled_percent,
        needs="DINO ViT-B/16 (torch, transformers; weights `dino-vitb16`), or its features of frames", checked=_CHECKED,
    ),
    Measure(
        "fvd", "video", video_pair, frechet, is_costly=True,
        needs="torch and r3d_18 (weights `r3d_18`), or its features of videos",
        checked="network: torch's own layers, published number of weights; distance: the recorded vectors",
    ),
    Measure(
        "musiq", "video", quality, mean, is_mean=True,
        needs="pyiqa (licence forbids commercial use; weights `musiq-spaq`, `musiq-koniq`), or scores of frames",
        checked="the calls to pyiqa, against a stand-in; the network itself was not run here",
    ),
    *video_kit.MEASURES,
)  # fmt: skip
