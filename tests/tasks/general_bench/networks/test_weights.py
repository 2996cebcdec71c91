"""Where weights are looked for, and what is said where they are absent."""

from __future__ import annotations

import functools
import socket
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import ConfigError
from lmms_eval.tasks.general_bench.measures.contract import Context
from lmms_eval.tasks.general_bench.networks.base import Network, inference, loaded, locate, usable_device
from lmms_eval.tasks.general_bench.networks.pictures import B32, clip
from tests.cases import for_each
from tests.tasks.general_bench.networks import kit

HUB = Network("a-network", "someone/a-network", "torch")
LOCAL = Network("a-network", package="torch")


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a connection was attempted")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@for_each("name", ["a-network", "a-network.safetensors", "a-network.pth", "a-network.npz"])
def test_weights_are_taken_from_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()

    context = Context(weights=tmp_path, download=True)

    assert locate(HUB, context, kit.item(tmp_path)) == tmp_path / name


def test_a_folder_goes_before_a_file(tmp_path: Path) -> None:
    (tmp_path / "a-network.pth").touch()
    (tmp_path / "a-network").mkdir()

    assert locate(HUB, Context(weights=tmp_path), kit.item(tmp_path)) == tmp_path / "a-network"


def test_the_hub_is_named_only_if_downloads_are_allowed(tmp_path: Path) -> None:
    assert locate(HUB, Context(download=True), kit.item(tmp_path)) == "someone/a-network"

    with pytest.raises(NotEvaluated) as absent:
        locate(HUB, Context(), kit.item(tmp_path))

    assert absent.value.reason == (
        "fid of 'Text-based E-commerce Product Image Generation' needs the weights someone/a-network "
        "(no folder of weights is given): put them at FOLDER/a-network and name FOLDER with the setting `weights`, "
        "or allow fetching them with `download`"
    )


def test_weights_without_a_repository_are_never_fetched(tmp_path: Path) -> None:
    with pytest.raises(NotEvaluated, match=rf"the weights a-network \(not at {tmp_path}/a-network\)") as absent:
        locate(LOCAL, Context(weights=tmp_path, download=True), kit.item(tmp_path))

    assert "download" not in absent.value.reason


def test_absent_packages_are_named(tmp_path: Path) -> None:
    network = Network("a-network", package="torch nothing_such other_thing.part")
    (tmp_path / "a-network").mkdir()

    with pytest.raises(NotEvaluated, match=r"the package nothing_such and the package other_thing\.part") as absent:
        locate(network, Context(weights=tmp_path), kit.item(tmp_path))

    assert "pip install torch nothing_such" in absent.value.reason


def test_a_network_is_loaded_once(tmp_path: Path) -> None:
    calls = []

    @functools.lru_cache(maxsize=2)
    def load(source: str, device: str) -> int:
        calls.append((source, device))
        return len(calls)

    (tmp_path / "a-network").mkdir()
    context = Context(weights=tmp_path)

    found = [loaded(load, LOCAL, context, kit.item(tmp_path)) for _ in range(2)]

    assert found == [1, 1]
    assert calls == [(str(tmp_path / "a-network"), "cpu")]


def test_damaged_weights_are_not_evaluated(tmp_path: Path) -> None:
    (tmp_path / B32.key).mkdir()
    (tmp_path / B32.key / "config.json").write_text("{")

    with pytest.raises(NotEvaluated, match=r"usable weights of clip-vit-base-patch32: .* cannot be loaded"):
        clip(B32, Context(weights=tmp_path), kit.item(tmp_path))


def test_weights_of_another_network_are_not_taken(tmp_path: Path) -> None:
    """``from_pretrained`` alone would leave the missing parts at random values."""
    kit.save_dino(tmp_path / "dino-vitb16")
    folder = kit.save_clip(tmp_path / B32.key)
    (folder / "model.safetensors").write_bytes((tmp_path / "dino-vitb16" / "model.safetensors").read_bytes())

    with pytest.raises(NotEvaluated, match="parts of the network have no weights"):
        clip(B32, Context(weights=tmp_path), kit.item(tmp_path))


def test_an_unknown_device_is_an_error_of_the_settings() -> None:
    assert usable_device(Context()) == "cpu"

    with pytest.raises(ConfigError, match="cannot run on device 'abacus'"):
        usable_device(Context(device="abacus"))


def test_inference_keeps_no_gradients_and_fixed_kernels() -> None:
    import torch

    before = torch.backends.cudnn.deterministic
    with inference():
        assert torch.is_inference_mode_enabled()
        assert torch.backends.cudnn.deterministic
        assert not torch.backends.cudnn.allow_tf32

    assert not torch.is_inference_mode_enabled()
    assert torch.backends.cudnn.deterministic == before


def test_local_weights_open_no_connection(tmp_path: Path) -> None:
    kit.save_clip(tmp_path / B32.key)

    network: Any = clip(B32, Context(weights=tmp_path), kit.item(tmp_path))

    assert network.texts(["a red car"]).shape == (1, 8)
