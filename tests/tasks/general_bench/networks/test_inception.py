"""InceptionV3 with thin layers against numbers that torch-fidelity 0.4.0 gave for the same weights and pictures."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.tasks.general_bench.measures.contract import Context
from lmms_eval.tasks.general_bench.networks import pictures as module
from tests.tasks.general_bench.networks import kit

torch.set_num_threads(1)  # test processes share the cores

WIDTH = 3
"""Channels of every convolution."""
LINES = {"7x7_2": (1, 7), "7x7_3": (7, 1), "7x7x3_2": (1, 7), "7x7x3_3": (7, 1), "7x7x3_4": (3, 3)}
SEVENS = {2: (7, 1), 3: (1, 7), 4: (7, 1), 5: (1, 7)}
EXPECTED = [
    [
        6.085945, 0.05022741, 0.0, 0.7709609, 95.19823, 27.14416, 13.05982, 21.29328, 39.83234, 11.4396, 4.908987,
        0.7509608, 0.01934732, 1.252488, 1.691981, 0.0, 0.0, 4.462036,
    ],
    [
        6.589616, 0.05107731, 0.0, 0.8604233, 101.2648, 29.20239, 13.82556, 22.5284, 42.43736, 11.97878, 5.227058,
        0.7118856, 0.01907941, 1.224259, 1.725826, 0.005843029, 0.0, 4.867589,
    ],
]  # fmt: skip


def kernel(name: str) -> tuple[int, int]:
    """Height and width of a convolution, which its name tells."""
    last = name.rpartition(".")[2].removeprefix("branch")
    if last.startswith("7x7dbl_"):
        return SEVENS.get(int(last[-1]), (1, 1))
    if last in LINES:
        return LINES[last]
    if last[-1] in "ab":
        return (1, 3) if last.endswith("a") else (3, 1)
    is_wide = (not last.endswith("_1") and last not in ("1x1", "_pool")) or last == "3x3"
    side = int(re.sub(r".*?([0-9])x[0-9].*", r"\1", last)) if is_wide and "x" in last else 1
    return side, side


def channels() -> dict[str, int]:
    """Channels that go into each convolution."""
    found = {name: 3 if place == 0 else WIDTH for place, name in enumerate(module.STEM)}
    entering = WIDTH
    for block in module.BLOCKS:
        leaving = entering if block.pool == "halve" else WIDTH
        for chain in block.chains:
            for place, name in enumerate(chain):
                for part in name.split("|"):
                    found[f"{block.name}.{part}"] = WIDTH if place else entering
            leaving += WIDTH * len(chain[-1].split("|"))
        if block.pool != "halve":
            found[f"{block.name}.branch_pool"] = entering
        entering = leaving
    return found


def thin_weights() -> dict[str, torch.Tensor]:
    source = np.random.default_rng(11)
    entering = channels()
    table: dict[str, np.ndarray] = {}
    for name in module.convolutions():
        shape = (WIDTH, entering[name], *kernel(name))
        table[f"{name}.conv.weight"] = source.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))
        table[f"{name}.bn.weight"] = source.uniform(0.8, 1.2, WIDTH)
        table[f"{name}.bn.bias"] = source.uniform(0.0, 0.2, WIDTH)
        table[f"{name}.bn.running_mean"] = source.uniform(-0.1, 0.1, WIDTH)
        table[f"{name}.bn.running_var"] = source.uniform(0.5, 1.5, WIDTH)
    return {name: torch.from_numpy(values.astype(np.float32)) for name, values in table.items()}


def test_features_are_those_of_torch_fidelity(tmp_path: Path) -> None:
    torch.save(thin_weights(), tmp_path / "inception-v3-fid.pth")
    network = module.inception(Context(weights=tmp_path), kit.item(tmp_path))

    found = network.pictures([kit.picture(1, (257, 123)), kit.picture(2, (64, 400))])

    assert found == pytest.approx(np.array(EXPECTED), rel=1e-4, abs=1e-5)


def test_there_are_94_convolutions() -> None:
    assert len(set(module.convolutions())) == len(module.convolutions()) == 94


def test_scaling_takes_the_pixel_at_the_left_of_each_place() -> None:
    row = np.array([[[0] * 3, [90] * 3, [30] * 3]], dtype=np.uint8)

    assert module.scale_as_tensorflow(row, 6)[0, :, 0].tolist() == [0, 45, 90, 60, 30, 30]
    assert module.scale_as_tensorflow(row, 1).tolist() == [[[0, 0, 0]]]


def test_weights_of_another_network_are_refused(tmp_path: Path) -> None:
    torch.save({"fc.weight": torch.zeros(3)}, tmp_path / "inception-v3-fid.pth")

    with pytest.raises(NotEvaluated, match=r"470 tensors are missing, the first are Conv2d_1a_3x3\.conv\.weight"):
        module.inception(Context(weights=tmp_path), kit.item(tmp_path))
