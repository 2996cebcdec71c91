"""LAION's aesthetic predictor: a linear layer over a picture's CLIP L/14 vector, trained on ratings from 1 to 10."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from lmms_eval.tasks.general_bench.networks.tensors import need, read_weights
from lmms_eval.tasks.general_bench.networks.weights import Network, loaded

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from lmms_eval.tasks.general_bench.items import Item
    from lmms_eval.tasks.general_bench.measures.contract import Context

    Floats = npt.NDArray[np.float32]

HEAD = Network(
    key="laion-aesthetic-vit-l-14-linear",
    model_id="",
    package="torch",
    metrics=("aesthetic_score",),
)
"""``sa_0_4_vit_l_14_linear.pth`` of LAION's aesthetic predictor, under this name."""


def ratings(vectors: Floats, context: Context, item: Item) -> list[float]:
    """Return the aesthetic rating, nominally 1 to 10, of each picture.

    Args:
        vectors: ``(pictures, dimensions)``, CLIP L/14 vectors of length 1.
        context: of the run.
        item: for messages.

    Raises:
        NotEvaluated: the layer is not there, or its size is not that of the vectors.
    """
    import numpy as np

    layer = loaded(_load, HEAD, context, item)
    if layer.shape[0] - 1 != vectors.shape[1]:
        from lmms_eval.tasks.general_bench.networks.weights import not_evaluated

        raise not_evaluated(
            item,
            f"vectors of {layer.shape[0] - 1} dimensions for {HEAD.key}, not of {vectors.shape[1]}",
            "use CLIP ViT-L/14 for the features and its own layer",
        )
    rows = np.asarray(vectors, dtype=np.float64)
    return [float(value) for value in rows @ layer[:-1] + layer[-1]]


@functools.lru_cache(maxsize=2)
def _load(source: str, device: str) -> npt.NDArray[np.float64]:  # noqa: ARG001 - so small that it runs on the CPU
    """Return the layer's weights followed by its bias."""
    import numpy as np

    weights = read_weights(source)
    need(weights, ("weight", "bias"))
    layer = [weights["weight"].numpy().reshape(-1), weights["bias"].numpy().reshape(-1)]
    if layer[1].size != 1:
        raise ValueError(f"{source}: a layer with one output is wanted, not with {layer[1].size}")
    return np.concatenate(layer).astype(np.float64)
