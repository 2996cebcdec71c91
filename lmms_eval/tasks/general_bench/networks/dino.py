"""DINO (Caron et al., 2021): the class token of a self-supervised ViT, which describes the subject of a picture.

Pictures are scaled (bilinear) until the shorter side has the network's size, and are not cropped: position encodings
are interpolated if a picture is not square.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lmms_eval.tasks.general_bench.networks.tensors import (
    IMAGENET,
    batches,
    check_loaded,
    numpy_rows,
    resize_short_side,
    stack,
)
from lmms_eval.tasks.general_bench.networks.weights import Network, inference, loaded

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from PIL import Image

    from lmms_eval.tasks.general_bench.items import Item
    from lmms_eval.tasks.general_bench.measures.contract import Context

VIT_B16 = Network(
    key="dino-vitb16",
    model_id="facebook/dino-vitb16",
    package="torch transformers",
    metrics=("dino_score", "i2v_composite"),
)


class Dino(Struct, frozen=True, eq=False):
    """A loaded DINO."""

    model: Any
    device: str

    def pictures(self, images: Iterable[Image.Image]) -> npt.NDArray[np.float32]:
        """Return the class tokens after the last normalisation, ``(pictures, dimensions)``."""
        size = int(self.model.config.image_size)
        found = []
        with inference():
            for part in batches(images):
                scaled = [resize_short_side(image, size) for image in part]
                for _, alike in itertools.groupby(scaled, lambda image: image.size):
                    pixels = stack(list(alike), IMAGENET).to(self.device)
                    out = self.model(pixel_values=pixels, interpolate_pos_encoding=True)
                    found.append(out.last_hidden_state[:, 0])
        return numpy_rows(found)


def dino(context: Context, item: Item) -> Dino:
    """DINO ViT-B/16, loaded once.

    Raises:
        NotEvaluated: its packages or weights are not there.
    """
    return loaded(_load, VIT_B16, context, item)


@functools.lru_cache(maxsize=2)
def _load(source: str, device: str) -> Dino:
    from transformers import ViTModel

    model, report = ViTModel.from_pretrained(
        source, local_files_only=Path(source).exists(), add_pooling_layer=False, output_loading_info=True
    )
    check_loaded(report["missing_keys"])
    return Dino(model.float().eval().to(device), device)
