"""Networks of videos: RAFT's optical flow, and the features of r3d_18."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lmms_eval.tasks.general_bench.networks import base

if TYPE_CHECKING:
    import torch
    from PIL import Image

RAFT = base.Network("raft-large", package="torch torchvision")
"""torchvision's weights ``Raft_Large_Weights.C_T_V1`` (of the authors, from Chairs and Things), under this name."""
_UPDATES = 20
_MULTIPLE = 8
_LEAST = 128


class Raft(base.LoadedNetwork, frozen=True, eq=False):
    """RAFT (Teed and Deng, 2020): optical flow between two frames. Needs torchvision."""

    def flows(self, frames: Iterable[Image.Image]) -> Iterator[npt.NDArray[np.float32]]:
        """Yield the flow ``(height, width, 2)`` in pixels of each pair of consecutive frames of one size."""
        import torch.nn.functional as nn

        for first, second in itertools.pairwise(frames):
            with base.inference():
                pair = base.stack([first, second.resize(first.size)], base.HALF).to(self.device)
                padding = (0, _missing(first.width), 0, _missing(first.height))
                padded = nn.pad(pair, padding, mode="replicate")
                flow = self.model(padded[:1], padded[1:], num_flow_updates=_UPDATES)[-1][0]
                cut = flow[:, : first.height, : first.width].permute(1, 2, 0)
                array: npt.NDArray[np.float32] = cut.float().cpu().numpy()
            yield array


@base.opener(RAFT)
def raft(source: str, device: str) -> Raft:
    """Load RAFT."""
    model = importlib.import_module("torchvision.models.optical_flow").raft_large(weights=None, progress=False)
    model.load_state_dict(base.read_weights(source))
    return Raft(model.eval().to(device), device)


def _missing(side: int) -> int:
    """Return the number of pixels to add to a side: to a multiple of 8 that is at least 128."""
    return max(_LEAST, -(-side // _MULTIPLE) * _MULTIPLE) - side


R3D_18 = base.Network("r3d_18", package="torch")
FRAMES = 16
SIDE = 224
_LAYERS = (1, 2, 3, 4)
_BLOCKS = (0, 1)
_NORM = ("weight", "bias", "running_mean", "running_var")


class VideoNetwork(base.LoadedNetwork, frozen=True, eq=False):
    """r3d_18 without its head (Tran et al., 2018): 512 numbers for 16 frames, for the Frechet video distance.

    The toolkit of the benchmark calls this network I3D. The weights are torchvision's (``r3d_18-b3b3357e.pth``,
    Kinetics-400); the network is written over that table and does not need torchvision. A clip is the first 16 frames
    of the video (a shorter video repeats its last frame), each scaled (bilinear) to 224 x 224 and normalised with the
    colours of Kinetics.
    """

    def video(self, frames: Iterable[Image.Image]) -> npt.NDArray[np.float32]:
        """Return the features ``(512,)`` of a video's first frames, at least one."""
        from PIL import Image

        first = itertools.islice(frames, FRAMES)
        used = [image.resize((SIDE, SIDE), Image.Resampling.BILINEAR) for image in first]
        used += [used[-1]] * (FRAMES - len(used))
        with base.inference():
            clip = base.stack(used, base.KINETICS).to(self.device).transpose(0, 1)[None]
            return base.numpy_rows([forward(clip, self.model)]).reshape(-1)


def tensors() -> list[str]:
    """Return the names of all tensors except those of the head: 21 convolutions, each with its normalisation."""
    pairs = [("stem.0", "stem.1")]
    for layer in _LAYERS:
        for block in _BLOCKS:
            place = f"layer{layer}.{block}"
            pairs += [(f"{place}.conv{number}.0", f"{place}.conv{number}.1") for number in (1, 2)]
        if layer > 1:
            pairs.append((f"layer{layer}.0.downsample.0", f"layer{layer}.0.downsample.1"))
    return [name for conv, norm in pairs for name in (f"{conv}.weight", *(f"{norm}.{part}" for part in _NORM))]


def forward(x: torch.Tensor, weights: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return ``(clips, 512)`` for ``(clips, 3, frames, height, width)``."""
    x = _convolve(x, "stem", weights, (1, 2, 2)).relu()
    for layer in _LAYERS:
        for block in _BLOCKS:
            name, halve = f"layer{layer}.{block}", layer > 1 and block == 0
            stride = (2, 2, 2) if halve else (1, 1, 1)
            passed = _convolve(x, f"{name}.downsample", weights, stride) if halve else x
            inner = _convolve(x, f"{name}.conv1", weights, stride).relu()
            x = (_convolve(inner, f"{name}.conv2", weights) + passed).relu()
    return x.mean(dim=(2, 3, 4))


def _convolve(
    x: torch.Tensor, name: str, weights: dict[str, torch.Tensor], stride: tuple[int, int, int] = (1, 1, 1)
) -> torch.Tensor:
    """Apply a convolution that keeps the size up to its stride, and batch normalisation with the running values."""
    import torch.nn.functional as nn

    kernel = weights[f"{name}.0.weight"]
    scale, shift, mean, variance = (weights[f"{name}.1.{part}"] for part in _NORM)
    padding = (kernel.shape[2] // 2, kernel.shape[3] // 2, kernel.shape[4] // 2)
    x = nn.conv3d(x, kernel, None, stride, padding)
    return nn.batch_norm(x, mean, variance, scale, shift, False, 0.0, 1e-5)


@base.opener(R3D_18)
def video_network(source: str, device: str) -> VideoNetwork:
    """Load the network."""
    return VideoNetwork(base.need(base.read_weights(source), tensors(), device), device)
