"""CLIP: pictures and texts as vectors of one space (Radford et al., 2021). Their cosines are the CLIP scores.

As in CLIP's training, pictures are scaled (bicubic) until the shorter side has the network's size, and cropped to the
middle square. Texts are cut at the longest length that the network takes. The processing is our own, so that numbers do
not depend on installed packages.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval.tasks.general_bench.networks.tensors import (
    OPENAI,
    TextTower,
    batches,
    centre_crop,
    check_loaded,
    numpy_rows,
    resize_short_side,
    stack,
    unit_rows,
)
from lmms_eval.tasks.general_bench.networks.weights import Network, inference, loaded

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from PIL import Image

    from lmms_eval.tasks.general_bench.items import Item
    from lmms_eval.tasks.general_bench.measures.contract import Context

    Floats = npt.NDArray[np.float32]

B32 = Network(
    key="clip-vit-base-patch32",
    model_id="openai/clip-vit-base-patch32",
    package="torch transformers",
    metrics=(
        "clip_score",
        "clip_score/render",
        "clip_score/background",
        "clip_score/style",
        "clip_image_score",
        "clip_style_score",
        "frame_accuracy_clip",
    ),
)
L14 = Network(
    key="clip-vit-large-patch14",
    model_id="openai/clip-vit-large-patch14",
    package="torch transformers",
    metrics=("aesthetic_score",),
)


class Clip(TextTower, frozen=True, eq=False):
    """A loaded CLIP."""

    def pictures(self, images: Iterable[Image.Image]) -> Floats:
        """Return the vectors of pictures, ``(pictures, dimensions)``, each of length 1."""
        size = int(self.model.config.vision_config.image_size)
        found = []
        with inference():
            for part in batches(images):
                cut = [centre_crop(resize_short_side(image, size, bicubic=True), size) for image in part]
                pooled = self.model.vision_model(pixel_values=stack(cut, OPENAI).to(self.device)).pooler_output
                found.append(unit_rows(self.model.visual_projection(pooled)))
        return numpy_rows(found)


def clip(network: Network, context: Context, item: Item) -> Clip:
    """A CLIP by its name, loaded once.

    Raises:
        NotEvaluated: its packages or weights are not there.
    """
    return loaded(_load, network, context, item)


@functools.lru_cache(maxsize=2)
def _load(source: str, device: str) -> Clip:
    from transformers import CLIPModel, CLIPTokenizer

    local = Path(source).exists()
    model, report = CLIPModel.from_pretrained(source, local_files_only=local, output_loading_info=True)
    check_loaded(report["missing_keys"], "position_ids")
    tokenizer = CLIPTokenizer.from_pretrained(source, local_files_only=local)
    longest = int(model.config.text_config.max_position_embeddings)
    return Clip(model.float().eval().to(device), tokenizer, device, longest)
