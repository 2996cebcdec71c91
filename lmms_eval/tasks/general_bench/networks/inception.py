"""InceptionV3 as the Frechet inception distance uses it: 2048 numbers for a picture (Heusel et al., 2017).

The network is that of TensorFlow's 2015 graph: its average pools leave out the padding, and its last block pools by the
maximum. The weights are the usual port of that graph to torch (``pt_inception-2015-12-05-6726825d.pth``). Pictures are
scaled to 299 x 299 as in TensorFlow 1 (bilinear between the corner pixels, without smoothing), then ``(x - 128) /
128``; other ways to scale change a FID by whole points. The network is written over the table of weights and does not
need torchvision.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from lmms_eval.tasks.general_bench.networks.tensors import batches, need, numpy_rows, on_device, read_weights
from lmms_eval.tasks.general_bench.networks.weights import Network, inference, opener

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import torch
    from PIL import Image


FID_INCEPTION = Network(key="inception-v3-fid", model_id="", package="torch", metrics=("fid",))
SIDE = 299
_EPSILON = 1e-3
_PARTS = ("conv.weight", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var")

Chain = tuple[str, ...]


class Block(Struct, frozen=True):
    """A block of parallel chains of convolutions, joined by channel."""

    name: str
    chains: tuple[Chain, ...]
    """A last name with ``|`` names two parallel convolutions."""
    pool: str
    """``mean`` or ``max`` (both keep the size, a convolution follows), or ``halve`` (maximum, nothing follows)."""


STEM = ("Conv2d_1a_3x3", "Conv2d_2a_3x3", "Conv2d_2b_3x3", "Conv2d_3b_1x1", "Conv2d_4a_3x3")
_DOUBLE = ("branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3")
_SEVEN = ("branch7x7_1", "branch7x7_2", "branch7x7_3")
_SEVENS = tuple(f"branch7x7dbl_{number}" for number in range(1, 6))
_A: tuple[Chain, ...] = (("branch1x1",), ("branch5x5_1", "branch5x5_2"), _DOUBLE)
_C: tuple[Chain, ...] = (("branch1x1",), _SEVEN, _SEVENS)
_E: tuple[Chain, ...] = (
    ("branch1x1",),
    ("branch3x3_1", "branch3x3_2a|branch3x3_2b"),
    ("branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3a|branch3x3dbl_3b"),
)
_D: tuple[Chain, ...] = (
    ("branch3x3_1", "branch3x3_2"),
    ("branch7x7x3_1", "branch7x7x3_2", "branch7x7x3_3", "branch7x7x3_4"),
)
BLOCKS = (
    *(Block(f"Mixed_5{letter}", _A, "mean") for letter in "bcd"),
    Block("Mixed_6a", (("branch3x3",), _DOUBLE), "halve"),
    *(Block(f"Mixed_6{letter}", _C, "mean") for letter in "bcde"),
    Block("Mixed_7a", _D, "halve"),
    Block("Mixed_7b", _E, "mean"),
    Block("Mixed_7c", _E, "max"),
)


class Inception(Struct, frozen=True, eq=False):
    """The loaded network."""

    weights: dict[str, torch.Tensor]
    device: str

    def pictures(self, images: Iterable[Image.Image]) -> npt.NDArray[np.float32]:
        """Return the features ``(pictures, 2048)`` of RGB pictures of any size."""
        import numpy as np
        import torch

        found = []
        with inference():
            for part in batches(images):
                pixels = np.stack([scale_as_tensorflow(np.asarray(image.convert("RGB"))) for image in part])
                tensor = torch.from_numpy(np.ascontiguousarray((pixels - 128).transpose(0, 3, 1, 2) / 128))
                found.append(forward(tensor.to(self.device), self.weights))
        return numpy_rows(found)


def convolutions() -> list[str]:
    """Return the names of all 94 convolutions."""
    names = list(STEM)
    for block in BLOCKS:
        chained = [part for chain in block.chains for name in chain for part in name.split("|")]
        pooled = [] if block.pool == "halve" else ["branch_pool"]
        names += [f"{block.name}.{name}" for name in (*chained, *pooled)]
    return names


def scale_as_tensorflow(pixels: npt.NDArray[np.uint8], side: int = SIDE) -> npt.NDArray[np.float32]:
    """Scale a picture to ``(side, side, 3)``. Output pixel ``i`` lies at ``i * size / side``, between two pixels."""
    import numpy as np

    (top, bottom, down), (left, right, across) = (_positions(size, side) for size in pixels.shape[:2])
    upper, lower = pixels[top].astype(np.float32), pixels[bottom].astype(np.float32)
    tall = upper + (lower - upper) * down[:, None, None]
    scaled: npt.NDArray[np.float32] = tall[:, left] + (tall[:, right] - tall[:, left]) * across[None, :, None]
    return scaled


def forward(x: torch.Tensor, weights: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return ``(pictures, 2048)`` for ``(pictures, 3, 299, 299)``: the mean of the last block over the picture."""
    import torch.nn.functional as nn

    x = _convolve(x, "Conv2d_1a_3x3", weights, 2, padded=False)
    x = _convolve(x, "Conv2d_2a_3x3", weights, padded=False)
    x = nn.max_pool2d(_convolve(x, "Conv2d_2b_3x3", weights), 3, 2)
    x = _convolve(x, "Conv2d_3b_1x1", weights)
    x = nn.max_pool2d(_convolve(x, "Conv2d_4a_3x3", weights, padded=False), 3, 2)
    for block in BLOCKS:
        x = _block(x, block, weights)
    return x.mean(dim=(2, 3))


def _block(x: torch.Tensor, block: Block, weights: dict[str, torch.Tensor]) -> torch.Tensor:
    import torch
    import torch.nn.functional as nn

    halve = block.pool == "halve"
    parts = []
    for chain in block.chains:
        last = x
        for name in chain[:-1]:
            last = _convolve(last, f"{block.name}.{name}", weights)
        if halve:
            parts.append(_convolve(last, f"{block.name}.{chain[-1]}", weights, 2, padded=False))
        else:
            parts += [_convolve(last, f"{block.name}.{name}", weights) for name in chain[-1].split("|")]
    if halve:
        parts.append(nn.max_pool2d(x, 3, 2))
    else:
        by_max = block.pool == "max"
        pooled = nn.max_pool2d(x, 3, 1, 1) if by_max else nn.avg_pool2d(x, 3, 1, 1, count_include_pad=False)
        parts.append(_convolve(pooled, f"{block.name}.branch_pool", weights))
    return torch.cat(parts, dim=1)


def _convolve(
    x: torch.Tensor, name: str, weights: dict[str, torch.Tensor], stride: int = 1, *, padded: bool = True
) -> torch.Tensor:
    """Apply convolution, batch normalisation with the running values, and ReLU. ``padded`` keeps the size."""
    import torch.nn.functional as nn

    kernel, scale, shift, mean, variance = (weights[f"{name}.{part}"] for part in _PARTS)
    padding = (kernel.shape[2] // 2, kernel.shape[3] // 2) if padded else (0, 0)
    x = nn.conv2d(x, kernel, None, stride, padding)
    return nn.relu(nn.batch_norm(x, mean, variance, scale, shift, False, 0.0, _EPSILON))


def _positions(size: int, side: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Return the pixels below and above each output pixel along a side, and its share of the way between them."""
    import numpy as np

    places = np.arange(side, dtype=np.float32) * np.float32(size / side)
    low = np.minimum(places.astype(np.int64), size - 1)
    return low, np.minimum(low + 1, size - 1), (places - low).astype(np.float32)


@opener(FID_INCEPTION)
def inception(source: str, device: str) -> Inception:
    """Load the network."""
    weights = read_weights(source)
    names = [f"{name}.{part}" for name in convolutions() for part in _PARTS]
    need(weights, names)
    return Inception(on_device({name: weights[name] for name in names}, device), device)
