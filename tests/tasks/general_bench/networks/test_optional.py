"""MUSIQ and RAFT: how the optional packages are called, with stand-ins for them, and what is said without them."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.tasks.general_bench.measures.contract import Context
from lmms_eval.tasks.general_bench.networks.pictures import KONIQ, SPAQ, musiq
from lmms_eval.tasks.general_bench.networks.videos import raft
from tests.tasks.general_bench.networks import kit

PYIQA = """
import torch
def create_metric(name, device=None, pretrained_model_path=None):
    assert pretrained_model_path and device == "cpu"
    scale = {"musiq": 100, "musiq-spaq": 50}[name]
    def score(pixels):
        assert pixels.ndim == 4 and 0 <= float(pixels.min()) and float(pixels.max()) <= 1
        return scale * pixels.mean() + pixels.shape[-1] / 1000
    return score
"""
RAFT_LARGE = """
import torch
class Shift(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.zeros(1))
    def forward(self, first, second, num_flow_updates=12):
        assert first.shape == second.shape and all(side % 8 == 0 and side >= 128 for side in first.shape[2:])
        assert num_flow_updates == 20 and float(first.abs().max()) <= 1
        rough = torch.zeros_like(first[:, :2])
        return [rough, (second - first)[:, :2] * self.scale]
def raft_large(weights=None, progress=True):
    assert weights is None and not progress
    return Shift()
"""


@pytest.fixture
def stand_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Packages of the same names in a folder of their own."""
    place = tmp_path / "packages"
    (place / "torchvision" / "models").mkdir(parents=True)
    (place / "pyiqa.py").write_text(PYIQA)
    for folder in ("torchvision", "torchvision/models"):
        (place / folder / "__init__.py").touch()
    (place / "torchvision" / "models" / "optical_flow.py").write_text(RAFT_LARGE)
    before = dict(sys.modules)
    monkeypatch.syspath_prepend(str(place))
    yield place
    for name in set(sys.modules) - set(before):
        if name.partition(".")[0] in ("pyiqa", "torchvision"):
            del sys.modules[name]


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither package can be found, whatever is installed."""
    import importlib.util

    found = importlib.util.find_spec

    def find(name: str, *rest: Any) -> Any:
        return None if name in ("pyiqa", "torchvision") else found(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", find)


def test_musiq_scores_pictures(stand_ins: Path, tmp_path: Path) -> None:
    for network in (KONIQ, SPAQ):
        (tmp_path / f"{network.key}.pth").touch()
    context, item = Context(weights=tmp_path), kit.item(tmp_path)
    picture = kit.picture(1, (60, 40))
    bright = float(np.asarray(picture).mean()) / 255

    assert musiq(KONIQ, context, item).pictures([picture]) == pytest.approx([100 * bright + 0.06], rel=1e-5)
    assert musiq(SPAQ, context, item).pictures([picture]) == pytest.approx([50 * bright + 0.06], rel=1e-5)
    assert musiq(KONIQ, context, item).pictures([picture], 30)[0] == pytest.approx(100 * bright + 0.03, abs=1)


def test_musiq_never_fetches(stand_ins: Path, tmp_path: Path) -> None:
    with pytest.raises(NotEvaluated, match="needs the weights musiq-koniq"):
        musiq(KONIQ, Context(weights=tmp_path, download=True), kit.item(tmp_path))


def test_raft_gives_the_flow_of_each_pair(stand_ins: Path, tmp_path: Path) -> None:
    torch.save({"scale": torch.tensor([3.0])}, tmp_path / "raft-large.pth")
    frames = [kit.picture(seed, (50, 30)) for seed in range(3)]

    flows = list(raft(Context(weights=tmp_path), kit.item(tmp_path)).flows(iter(frames)))

    assert [flow.shape for flow in flows] == [(30, 50, 2)] * 2
    change = np.asarray(frames[2], float) - np.asarray(frames[1], float)
    assert flows[1] == pytest.approx(change[..., :2] / 127.5 * 3, abs=1e-4)


def test_weights_of_another_network_are_refused(stand_ins: Path, tmp_path: Path) -> None:
    torch.save({"other": torch.zeros(1)}, tmp_path / "raft-large.pth")

    with pytest.raises(NotEvaluated, match="usable weights of raft-large"):
        raft(Context(weights=tmp_path), kit.item(tmp_path))


@pytest.mark.usefixtures("without")
def test_absent_packages_are_named(tmp_path: Path) -> None:
    with pytest.raises(NotEvaluated, match=r"the package pyiqa \(musiq-koniq\): pip install torch pyiqa"):
        musiq(KONIQ, Context(), kit.item(tmp_path))
    with pytest.raises(NotEvaluated, match=r"the package torchvision \(raft-large\)"):
        raft(Context(), kit.item(tmp_path))


def test_the_stand_ins_are_gone() -> None:
    assert not isinstance(sys.modules.get("pyiqa"), ModuleType)
