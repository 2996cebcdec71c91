"""RAFT (Teed and Deng, 2020): optical flow between two frames. Needs torchvision."""

from __future__ import annotations

import functools
import importlib
import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lmms_eval.tasks.general_bench.networks.tensors import HALF, read_weights, stack
from lmms_eval.tasks.general_bench.networks.weights import Network, inference, loaded

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from PIL import Image

    from lmms_eval.tasks.general_bench.items import Item
    from lmms_eval.tasks.general_bench.measures.contract import Context

RAFT = Network(
    key="raft-large",
    model_id="",
    package="torch torchvision",
    metrics=("dynamic_degree", "i2v_composite"),
)
"""torchvision's weights ``Raft_Large_Weights.C_T_V1`` (the authors' own, trained on Chairs and Things), under this
name.
"""
_UPDATES = 20
_MULTIPLE = 8
_LEAST = 128


class Raft(Struct, frozen=True, eq=False):
    """The loaded network."""

    model: Any
    device: str

    def flows(self, frames: Iterable[Image.Image]) -> Iterator[npt.NDArray[np.float32]]:
        """Yield the flow ``(height, width, 2)`` in pixels of each pair of consecutive frames of one size."""
        import torch.nn.functional as nn

        for first, second in itertools.pairwise(frames):
            with inference():
                pair = stack([first, second.resize(first.size)], HALF).to(self.device)
                padding = (0, _missing(first.width), 0, _missing(first.height))
                padded = nn.pad(pair, padding, mode="replicate")
                flow = self.model(padded[:1], padded[1:], num_flow_updates=_UPDATES)[-1][0]
                cut = flow[:, : first.height, : first.width].permute(1, 2, 0)
                array: npt.NDArray[np.float32] = cut.float().cpu().numpy()
            yield array


def raft(context: Context, item: Item) -> Raft:
    """The network, loaded once.

    Raises:
        NotEvaluated: torchvision or the weights are not there.
    """
    return loaded(_load, RAFT, context, item)


@functools.lru_cache(maxsize=1)
def _load(source: str, device: str) -> Raft:
    model = importlib.import_module("torchvision.models.optical_flow").raft_large(weights=None, progress=False)
    model.load_state_dict(read_weights(source))
    return Raft(model.eval().to(device), device)


def _missing(side: int) -> int:
    """Return the number of pixels to add to a side: to a multiple of 8 that is at least 128."""
    return max(_LEAST, -(-side // _MULTIPLE) * _MULTIPLE) - side
