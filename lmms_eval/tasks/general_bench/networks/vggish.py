"""VGGish: 128 numbers for each 0.96 seconds of sound (Hershey et al., 2017), for the Frechet audio distance.

As in Kilgour et al. (2019), the last layer has no rectifier and there are no principal components. The weights are a
table with the tensors of the usual PyTorch conversions (``features.N.weight``, ``embeddings.N.weight``, or torchaudio's
names).

The input is the logarithm of a mel spectrogram of 16 kHz mono: windows of 25 ms (Hann) every 10 ms, magnitudes of 512
points, 64 triangular bands from 125 to 7500 Hz that are even on the mel scale, 0.01 added. 96 windows make one vector.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from msgspec import Struct

from lmms_eval.tasks.general_bench.networks.tensors import need, numpy_rows, on_device, read_weights
from lmms_eval.tasks.general_bench.networks.weights import Network, inference, opener

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import torch

    Floats = npt.NDArray[np.float32]
    Doubles = npt.NDArray[np.float64]

VGGISH = Network(key="vggish", model_id="", package="torch", metrics=("fad",))
SAMPLING_RATE = 16_000
WINDOWS = 96
BANDS = 64
_WINDOW, _HOP, _POINTS = 400, 160, 512
_LOWEST, _HIGHEST = 125.0, 7500.0
_OFFSET = 0.01
_AT_ONCE = 16
_BLOCK = 4096
_CONVOLUTIONS = {0: True, 3: True, 6: False, 8: True, 11: False, 13: True}
"""Numbers of the convolutions in ``features``, and whether a pooling follows each."""
_DENSE = (0, 2, 4)
_NAMES = (("features_network.", "features."), ("embedding_network.", "embeddings."))


class Vggish(Struct, frozen=True, eq=False):
    """The loaded network."""

    weights: dict[str, torch.Tensor]
    device: str

    def rows(self, samples: Floats) -> Floats:
        """Return the vectors ``(vectors, 128)`` of mono samples at 16 kHz, one for each whole 0.96 seconds. A shorter
        sound is padded with silence to one.
        """
        import torch

        seen = torch.from_numpy(examples(samples))[:, None]
        with inference():
            return numpy_rows([forward(part.to(self.device), self.weights) for part in seen.split(_AT_ONCE)])


def examples(samples: Floats) -> Floats:
    """Return logarithmic mel spectrograms ``(examples, 96, 64)`` of mono samples at 16 kHz, at least one."""
    import numpy as np

    least = (WINDOWS - 1) * _HOP + _WINDOW
    sound = np.asarray(samples, dtype=np.float64)
    sound = np.pad(sound, (0, max(0, least - len(sound))))
    count = (1 + (len(sound) - _WINDOW) // _HOP) // WINDOWS
    windows = np.lib.stride_tricks.sliding_window_view(sound, _WINDOW)[::_HOP][: count * WINDOWS]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(_WINDOW) / _WINDOW)
    bands = mel_bands()
    # a block of windows at a time: half an hour would need gigabytes of spectrum
    blocks = (windows[start : start + _BLOCK] for start in range(0, len(windows), _BLOCK))
    parts = [np.abs(np.fft.rfft(block * hann, _POINTS)) @ bands for block in blocks]
    logarithms: Floats = np.log(np.concatenate(parts) + _OFFSET).astype(np.float32)
    return logarithms.reshape(count, WINDOWS, BANDS)


@functools.cache
def mel_bands() -> Doubles:
    """Return the weights ``(frequencies, 64)`` of the triangular bands. The constant part has weight 0 in all bands."""
    import numpy as np

    frequencies = _mel(np.linspace(0.0, SAMPLING_RATE / 2, _POINTS // 2 + 1))
    edges = np.linspace(float(_mel(np.float64(_LOWEST))), float(_mel(np.float64(_HIGHEST))), BANDS + 2)
    low, middle, high = edges[:-2], edges[1:-1], edges[2:]
    rising = (frequencies[:, None] - low) / (middle - low)
    falling = (high - frequencies[:, None]) / (high - middle)
    bands: Doubles = np.maximum(0.0, np.minimum(rising, falling))
    bands[0] = 0.0
    return bands


def tensors() -> list[str]:
    """Return the names of the network's tensors."""
    layers = [f"features.{number}" for number in _CONVOLUTIONS] + [f"embeddings.{number}" for number in _DENSE]
    return [f"{layer}.{part}" for layer in layers for part in ("weight", "bias")]


def forward(x: torch.Tensor, weights: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return ``(examples, 128)`` for ``(examples, 1, 96, 64)``."""
    import torch.nn.functional as nn

    for number, is_pooled in _CONVOLUTIONS.items():
        name = f"features.{number}"
        x = nn.conv2d(x, weights[f"{name}.weight"], weights[f"{name}.bias"], padding=1).relu()
        x = nn.max_pool2d(x, 2) if is_pooled else x
    x = x.permute(0, 2, 3, 1).flatten(1)  # in the order of the original: time, frequency, channel
    for number in _DENSE:
        name = f"embeddings.{number}"
        x = nn.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])
        x = x if number == _DENSE[-1] else x.relu()
    return x


def _mel(frequency: Doubles | np.float64) -> Doubles:
    import numpy as np

    mels: Doubles = 1127.0 * np.log1p(np.asarray(frequency) / 700.0)
    return mels


@opener(VGGISH)
def vggish(source: str, device: str) -> Vggish:
    """Load VGGish."""
    found = read_weights(source)
    for theirs, ours in _NAMES:
        found = {ours + name.removeprefix(theirs) if name.startswith(theirs) else name: t for name, t in found.items()}
    need(found, tensors())
    return Vggish(on_device({name: found[name] for name in tensors()}, device), device)
