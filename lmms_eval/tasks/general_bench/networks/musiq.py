"""MUSIQ (Ke et al., 2021): quality of a picture without a reference, 0 to 100. Needs the package pyiqa.

The licence of pyiqa forbids commercial use, so no extra requires it: users who may use it install it themselves.
Without it, the scores of frames can be computed elsewhere and given with the prediction.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lmms_eval.tasks.general_bench.networks.weights import Network, inference, loaded

if TYPE_CHECKING:
    from PIL import Image

    from lmms_eval.tasks.general_bench.items import Item
    from lmms_eval.tasks.general_bench.measures.contract import Context

KONIQ = Network(key="musiq-koniq", model_id="", package="torch pyiqa", metrics=("musiq",))
"""pyiqa's weights ``musiq_koniq_ckpt-e95806b9.pth``, under this name."""
SPAQ = Network(key="musiq-spaq", model_id="", package="torch pyiqa", metrics=("musiq",))
"""pyiqa's weights ``musiq_spaq_ckpt-358bb6af.pth``, under this name."""
_NAMES = {KONIQ.key: "musiq", SPAQ.key: "musiq-spaq"}


class Musiq(Struct, frozen=True, eq=False):
    """A loaded MUSIQ."""

    model: Any
    device: str

    def pictures(self, images: Iterable[Image.Image], longest: int | None = None) -> list[float]:
        """Return the quality of each picture. A picture with a side above ``longest`` is shrunk to it.

        Raises:
            ValueError: a score is not finite: the weights are damaged.
        """
        import numpy as np
        import torch

        from lmms_eval.media.image import shrink

        found = []
        with inference():
            for image in images:
                pixels = np.array(shrink(image, max_side=longest).convert("RGB"), dtype=np.float32) / 255
                tensor = torch.from_numpy(pixels).permute(2, 0, 1)[None].to(self.device)
                found.append(float(self.model(tensor)))
        if not all(map(math.isfinite, found)):
            raise ValueError("MUSIQ gives scores that are not finite: check its weights")
        return found


def musiq(network: Network, context: Context, item: Item) -> Musiq:
    """``KONIQ`` or ``SPAQ``, loaded once.

    Raises:
        NotEvaluated: pyiqa or the weights are not there.
    """
    return loaded(_LOADERS[network.key], network, context, item)


@functools.lru_cache(maxsize=2)
def _load(source: str, device: str, name: str) -> Musiq:
    if not Path(source).is_file():
        raise FileNotFoundError(f"{source} is no file of weights")
    pyiqa = importlib.import_module("pyiqa")
    return Musiq(pyiqa.create_metric(name, device=device, pretrained_model_path=source), device)


_LOADERS = {key: functools.partial(_load, name=name) for key, name in _NAMES.items()}
