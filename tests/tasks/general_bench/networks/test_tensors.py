"""Files of weights, and pictures as tensors."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lmms_eval.tasks.general_bench.networks import base as tensors
from lmms_eval.tasks.general_bench.networks.base import load_errors
from tests.cases import for_each
from tests.tasks.general_bench.networks import kit

TABLE = {"weight": torch.arange(6.0).reshape(2, 3), "steps": torch.tensor(3)}


def save(path: Path, table: dict[str, Any]) -> Path:
    match path.suffix:
        case ".safetensors":
            from safetensors.torch import save_file

            save_file(table, path)
        case ".npz":
            np.savez(path, **{name: tensor.numpy() for name, tensor in table.items()})
        case _:
            torch.save(table, path)
    return path


@for_each("name", ["a.safetensors", "a.npz", "a.pth", "a.bin", "a"])
def test_files_of_weights_are_read(tmp_path: Path, name: str) -> None:
    found = tensors.read_weights(str(save(tmp_path / name, TABLE)))

    assert set(found) == {"weight", "steps"}
    assert torch.equal(found["weight"], TABLE["weight"])


def test_a_folder_has_one_file(tmp_path: Path) -> None:
    save(tmp_path / "model.safetensors", TABLE)

    assert torch.equal(tensors.read_weights(str(tmp_path))["weight"], TABLE["weight"])

    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"does not hold any of model\.safetensors"):
        tensors.read_weights(str(tmp_path / "empty"))


@for_each("key", ["state_dict", "model"])
def test_wrapped_tables_are_found_and_made_float32(tmp_path: Path, key: str) -> None:
    path = save(tmp_path / "a.pth", {key: {"weight": TABLE["weight"].half()}, "epoch": 3})

    assert tensors.read_weights(str(path))["weight"].dtype == torch.float32


def test_nothing_in_a_file_is_executed(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (tmp_path / "sprung",)

    torch.save({"weight": Trap()}, tmp_path / "a.pth")
    (tmp_path / "plain.pth").write_bytes(pickle.dumps({"weight": Trap()}, protocol=2))

    for name in ("a.pth", "plain.pth"):
        with pytest.raises(load_errors()):
            tensors.read_weights(str(tmp_path / name))
    assert not (tmp_path / "sprung").exists()


def test_other_content_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "a.pth", {"weight": 3})

    with pytest.raises(ValueError, match="no table of tensors"):
        tensors.read_weights(str(path))


def test_missing_tensors_are_named() -> None:
    with pytest.raises(KeyError, match="2 tensors are missing, the first are b, c"):
        tensors.need({"a": torch.zeros(1)}, ["a", "b", "c"])


def test_numbers_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="not finite"):
        tensors.numpy_rows([torch.tensor([[1.0, float("nan")]])])


def test_batches_are_taken_as_they_are_asked_for() -> None:
    taken: list[int] = []

    def numbers() -> Any:
        for number in range(5):
            taken.append(number)
            yield number

    parts = tensors.batches(numbers(), 2)

    assert next(parts) == [0, 1]
    assert taken == [0, 1]
    assert list(parts) == [[2, 3], [4]]


def test_stack_normalises() -> None:
    picture = kit.picture(1, (3, 2))

    found = tensors.stack([picture, picture], tensors.HALF)

    assert found.shape == (2, 3, 2, 3)
    assert found[1].numpy() == pytest.approx(np.asarray(picture).transpose(2, 0, 1) / 127.5 - 1, abs=1e-6)
