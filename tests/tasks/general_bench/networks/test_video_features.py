"""r3d_18 with thin layers against a network of torch's own layers with the same weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.tasks.general_bench.measures.contract import Context
from lmms_eval.tasks.general_bench.networks import videos as video_features
from tests.tasks.general_bench.networks import kit

torch.set_num_threads(1)  # test processes share the cores

PUBLISHED_WEIGHTS = 33_371_472
"""Of r3d_18 as torchvision's table of models says, the head (512 x 400 and 400) included."""


class Residual(nn.Module):
    """Two convolutions beside a passage."""

    def __init__(self, entering: int, leaving: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Sequential(
            nn.Conv3d(entering, leaving, 3, stride, 1, bias=False), nn.BatchNorm3d(leaving), nn.ReLU()
        )
        self.conv2 = nn.Sequential(nn.Conv3d(leaving, leaving, 3, 1, 1, bias=False), nn.BatchNorm3d(leaving))
        if stride > 1:
            self.downsample = nn.Sequential(
                nn.Conv3d(entering, leaving, 1, stride, bias=False), nn.BatchNorm3d(leaving)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        passed = self.downsample(x) if hasattr(self, "downsample") else x
        return torch.relu(self.conv2(self.conv1(x)) + passed)


class Layers(nn.Module):
    """The whole network; ``width`` is 64 in the real one."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv3d(3, width, (3, 7, 7), (1, 2, 2), (1, 3, 3), bias=False), nn.BatchNorm3d(width), nn.ReLU()
        )
        entering = width
        for number in range(1, 5):
            leaving = width * 2 ** (number - 1)
            stride = 1 if number == 1 else 2
            blocks = nn.Sequential(Residual(entering, leaving, stride), Residual(leaving, leaving, 1))
            setattr(self, f"layer{number}", blocks)
            entering = leaving

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layer4(self.layer3(self.layer2(self.layer1(self.stem(x)))))
        return nn.functional.adaptive_avg_pool3d(x, 1).flatten(1)


@pytest.fixture(scope="module")
def layers() -> Layers:
    torch.manual_seed(1)
    network = Layers(4).eval()
    with torch.no_grad():
        for name, buffer in network.named_buffers():
            if name.endswith("running_mean"):
                buffer.normal_(0, 0.1)
            elif name.endswith("running_var"):
                buffer.uniform_(0.5, 1.5)
    return network


@pytest.fixture
def network(tmp_path: Path, layers: Layers) -> video_features.VideoNetwork:
    torch.save(layers.state_dict(), tmp_path / "r3d_18.pth")
    return video_features.video_network(Context(weights=tmp_path), kit.item(tmp_path))


def direct(layers: Layers, frames: list[np.ndarray]) -> np.ndarray:
    array = (np.stack(frames) / 255 - [0.43216, 0.394666, 0.37645]) / [0.22803, 0.22145, 0.216989]
    clip = torch.tensor(array.transpose(3, 0, 1, 2)[None], dtype=torch.float32)
    with torch.no_grad():
        return layers(clip)[0].numpy()


def test_the_names_and_sizes_are_those_of_the_published_network() -> None:
    weights = Layers(64).state_dict()
    counted = sum(weights[name].numel() for name in video_features.tensors() if name.endswith(("weight", "bias")))

    assert counted + 512 * 400 + 400 == PUBLISHED_WEIGHTS
    assert {name for name in weights if not name.endswith("num_batches_tracked")} == set(video_features.tensors())


def test_features_are_those_of_the_layers(network: video_features.VideoNetwork, layers: Layers) -> None:
    frames = [kit.picture(seed, (224, 224)) for seed in range(16)]

    found = network.video(frames)

    assert found == pytest.approx(direct(layers, [np.asarray(frame) for frame in frames]), rel=1e-4, abs=1e-5)


def test_short_videos_repeat_their_last_frame_and_long_ones_are_cut(
    network: video_features.VideoNetwork, layers: Layers
) -> None:
    first, last = kit.picture(1, (224, 224)), kit.picture(2, (224, 224))

    found = network.video([first, last])

    assert found == pytest.approx(direct(layers, [np.asarray(first), *[np.asarray(last)] * 15]), rel=1e-4, abs=1e-5)
    assert network.video([first, *[last] * 20]) == pytest.approx(found, abs=1e-6)


def test_absent_weights_are_named(tmp_path: Path) -> None:
    item = kit.item(tmp_path, "Human Video Generation", "video")

    with pytest.raises(NotEvaluated, match=r"fvd of 'Human Video Generation' needs the weights r3d_18 \(not at .*r3d"):
        video_features.video_network(Context(weights=tmp_path, download=True), item)
