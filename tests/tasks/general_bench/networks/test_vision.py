"""DINO vectors and classes of pictures against the models of transformers called directly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lmms_eval.tasks.general_bench.measures.contract import Context
from lmms_eval.tasks.general_bench.networks.pictures import VIT_B16, VIT_IMAGENET, classifier, dino
from tests.cases import for_each
from tests.tasks.general_bench.networks import kit

NAMES = {0: "tench, Tinca tinca", 1: "sports car, sport car", 2: "tabby"}


def test_dino_vectors_are_class_tokens_of_the_model(tmp_path: Path) -> None:
    import torch
    from transformers import ViTModel

    kit.save_dino(tmp_path / VIT_B16.key)
    model = ViTModel.from_pretrained(tmp_path / VIT_B16.key, add_pooling_layer=False).eval()
    pictures = [kit.picture(1, (32, 32)), kit.picture(2, (64, 32))]
    direct = []
    for picture in pictures:
        pixels = (np.asarray(picture) / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
        tensor = torch.tensor(pixels.transpose(2, 0, 1)[None], dtype=torch.float32)
        with torch.no_grad():
            direct.append(model(tensor, interpolate_pos_encoding=True).last_hidden_state[0, 0].numpy())

    found = dino(Context(weights=tmp_path), kit.item(tmp_path)).pictures(pictures)

    assert found == pytest.approx(np.stack(direct), abs=1e-5)


def test_very_long_pictures_stay_bounded(tmp_path: Path) -> None:
    from lmms_eval.tasks.general_bench.networks.base import resize_short_side

    assert resize_short_side(kit.picture(1, (4000, 2)), 32).size == (256, 32)
    assert resize_short_side(kit.picture(1, (64, 128)), 32).size == (32, 64)


def test_classes_are_those_of_the_model(tmp_path: Path) -> None:
    import torch
    from transformers import ViTForImageClassification

    kit.save_classifier(tmp_path / VIT_IMAGENET.key, NAMES)
    model = ViTForImageClassification.from_pretrained(tmp_path / VIT_IMAGENET.key).eval()
    network = classifier(Context(weights=tmp_path), kit.item(tmp_path))
    found = []
    for seed in range(12):
        picture = kit.picture(seed, (32, 32))
        tensor = torch.tensor(np.asarray(picture).transpose(2, 0, 1)[None] / 127.5 - 1, dtype=torch.float32)
        with torch.no_grad():
            expected = int(model(tensor).logits.argmax())
        found.append(network.classify(picture))
        assert found[-1] == expected

    assert len(set(found)) > 1


@for_each(
    ("label", "number"),
    [("tench", 0), ("Tinca_Tinca", 0), ("sports-car, sport car", 1), ("Sport Car", 1), (2, 2), ("1", 1)],
)
def test_labels_are_found_by_name_or_number(tmp_path: Path, label: str | int, number: int) -> None:
    kit.save_classifier(tmp_path / VIT_IMAGENET.key, NAMES)

    assert classifier(Context(weights=tmp_path), kit.item(tmp_path)).find(label) == number


@for_each("label", ["car", "", 3, "17", -1])
def test_other_labels_are_not_found(tmp_path: Path, label: str | int) -> None:
    kit.save_classifier(tmp_path / VIT_IMAGENET.key, NAMES)

    assert classifier(Context(weights=tmp_path), kit.item(tmp_path)).find(label) is None
