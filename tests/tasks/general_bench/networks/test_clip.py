"""CLIP vectors against the model of transformers called directly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lmms_eval.tasks.general_bench.measures.contract import Context
from lmms_eval.tasks.general_bench.networks.pictures import B32, Clip, clip
from tests.tasks.general_bench.networks import kit


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("weights")
    kit.save_clip(place / B32.key)
    return place


@pytest.fixture
def network(folder: Path, tmp_path: Path) -> Clip:
    return clip(B32, Context(weights=folder), kit.item(tmp_path))


def test_pictures_are_those_of_the_model(folder: Path, network: Clip) -> None:
    """A square picture of the network's size needs no scaling, so that what the model does is all there is."""
    import torch
    from transformers import CLIPModel

    square = kit.picture(1, (32, 32))
    pixels = (np.asarray(square) / 255 - [0.48145466, 0.4578275, 0.40821073]) / [0.26862954, 0.26130258, 0.27577711]
    model = CLIPModel.from_pretrained(folder / B32.key).eval()
    with torch.no_grad():
        out = model.get_image_features(pixel_values=torch.tensor(pixels.transpose(2, 0, 1)[None], dtype=torch.float32))
    direct = getattr(out, "pooler_output", out)[0].numpy()

    found = network.pictures([square])

    assert found.shape == (1, 8)
    assert found[0] == pytest.approx(direct / np.linalg.norm(direct), abs=1e-5)


def test_texts_are_those_of_the_model(folder: Path, network: Clip) -> None:
    import torch
    from transformers import CLIPModel, CLIPTokenizer

    texts = ["a red car", "a blue dog painting"]
    model = CLIPModel.from_pretrained(folder / B32.key).eval()
    tokenizer = CLIPTokenizer.from_pretrained(folder / B32.key)
    direct = []
    for text in texts:
        with torch.no_grad():
            out = model.get_text_features(**tokenizer([text], return_tensors="pt"))
        direct.append(getattr(out, "pooler_output", out)[0].numpy())

    found = network.texts(texts)

    for row, one in zip(found, direct, strict=True):
        assert row == pytest.approx(one / np.linalg.norm(one), abs=1e-5)


def test_batches_change_nothing(network: Clip) -> None:
    pictures = [kit.picture(number, (30 + number, 40)) for number in range(18)]

    together = network.pictures(iter(pictures))

    assert together.shape == (18, 8)
    assert together == pytest.approx(np.concatenate([network.pictures([one]) for one in pictures]), abs=1e-5)


def test_long_texts_are_cut(network: Clip) -> None:
    found = network.texts(["a red car " * 50, "a red car " * 60])

    assert found[0] == pytest.approx(found[1], abs=1e-6)


def test_the_middle_of_a_wide_picture_is_seen(network: Clip) -> None:
    wide = kit.picture(2, (96, 32))
    middle = wide.crop((32, 0, 64, 32))

    assert network.pictures([wide])[0] == pytest.approx(network.pictures([middle])[0], abs=1e-6)
