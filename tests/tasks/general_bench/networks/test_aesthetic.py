"""The linear layer of aesthetic ratings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.tasks.general_bench.measures.contract import Context
from lmms_eval.tasks.general_bench.networks.pictures import AESTHETIC, ratings
from tests.tasks.general_bench.networks import kit


def test_ratings_are_those_of_the_layer(tmp_path: Path) -> None:
    torch.manual_seed(2)
    layer = torch.nn.Linear(8, 1)
    torch.save(layer.state_dict(), tmp_path / f"{AESTHETIC.key}.pth")
    vectors = np.random.default_rng(1).standard_normal((3, 8)).astype(np.float32)

    found = ratings(vectors, Context(weights=tmp_path), kit.item(tmp_path))

    with torch.no_grad():
        assert found == pytest.approx(layer(torch.from_numpy(vectors))[:, 0].tolist(), rel=1e-5)


def test_vectors_of_another_network_are_not_rated(tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(8, 1).state_dict(), tmp_path / f"{AESTHETIC.key}.pth")

    with pytest.raises(NotEvaluated, match=r"vectors of 8 dimensions .* not of 5"):
        ratings(np.ones((2, 5), np.float32), Context(weights=tmp_path), kit.item(tmp_path))


def test_a_layer_with_several_outputs_is_refused(tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(8, 2).state_dict(), tmp_path / f"{AESTHETIC.key}.pth")

    with pytest.raises(NotEvaluated, match="one output is wanted, not with 2"):
        ratings(np.ones((2, 8), np.float32), Context(weights=tmp_path), kit.item(tmp_path))
