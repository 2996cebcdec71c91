"""CLIP scores, FID and classes of generated pictures, with tiny networks and with features from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import UnreadableAnswer
from lmms_eval.tasks.general_bench.measures.contract import Context, Measure
from lmms_eval.tasks.general_bench.measures.embeddings import frechet_from_embeddings
from lmms_eval.tasks.general_bench.measures.picture_networks import MEASURES
from lmms_eval.tasks.general_bench.networks.pictures import B32, Clip, classifier, clip
from tests.cases import for_each
from tests.tasks.general_bench.networks import kit
from tests.tasks.general_bench.networks.test_inception import EXPECTED, thin_weights

SOUND = "Sound-to-Image Gernation"
EDITING = "Text-based Image Editing"
TEXT_TO_MESH = "Text to 3D Nature and Biology Mesh Generation"
IMAGE_TO_MESH = "Nature and Biology Image to 3D Mesh Generation"
EEG = "EEG-based Image Generation"
MOTION = "Text to 3D Motion Generation"


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("weights")
    kit.save_clip(place / B32.key)
    kit.save_classifier(place / "vit-base-patch16-224", {0: "tench", 1: "sports car, sport car", 2: "tabby"})
    torch.save(thin_weights(), place / "inception-v3-fid.pth")
    return place


@pytest.fixture
def network(weights: Path, tmp_path: Path) -> Clip:
    return clip(B32, Context(weights=weights), kit.item(tmp_path))


def measure(name: str) -> Measure:
    return next(one for one in MEASURES if one.name == name)


def given(tmp_path: Path, rows: Any, task: str = "data") -> Context:
    """A context without weights, with features of item 7's reference."""
    kit.array(tmp_path / "given" / task / "7.npy", rows)
    return Context(options={"reference_features": tmp_path / "given"})


def test_clip_score_is_the_plain_cosine(tmp_path: Path, weights: Path, network: Clip) -> None:
    item = kit.item(tmp_path, SOUND)
    kit.save(kit.picture(1), item.prediction_folder / "a.png")
    expected = 100 * float(network.pictures([kit.picture(1)])[0] @ network.texts(["a red car"])[0])

    found = measure("clip_score").state("a.png", item, Context(weights=weights))

    assert found == pytest.approx(expected, abs=1e-4)
    assert measure("clip_score").value([found, -10.0]) == pytest.approx((found - 10) / 2)


def test_features_from_files_give_the_same_score(tmp_path: Path, weights: Path, network: Clip) -> None:
    item = kit.item(tmp_path, SOUND)
    kit.save(kit.picture(1), item.prediction_folder / "a.png")
    kit.array(item.prediction_folder / "a.npy", 3 * network.pictures([kit.picture(1)])[0])
    score = measure("clip_score").state
    both = given(tmp_path, network.texts(["a red car"]))

    direct = score("a.png", item, Context(weights=weights))

    assert score({"features": "a.npy"}, item, Context(weights=weights)) == pytest.approx(direct, abs=1e-4)
    assert score({"features": "a.npy"}, item, both) == pytest.approx(direct, abs=1e-4)
    kit.array(item.prediction_folder / "two.npy", np.ones((2, 8)))
    with pytest.raises(UnreadableAnswer, match="one vector is needed, not 2"):
        score({"features": "two.npy"}, item, both)


def test_clip_image_score_is_the_mean_over_references(tmp_path: Path, weights: Path, network: Clip) -> None:
    item = kit.item(tmp_path, EDITING, reference=["1.png", "2.png"])
    kit.save(kit.picture(5), item.prediction_folder / "a.png")
    for seed in (1, 2):
        kit.save(kit.picture(seed), item.folder / f"{seed}.png")
    made, *references = network.pictures([kit.picture(seed) for seed in (5, 1, 2)])
    expected = 50 * float(made @ references[0] + made @ references[1])
    state = measure("clip_image_score").state

    assert state("a.png", item, Context(weights=weights)) == pytest.approx(expected, abs=1e-4)
    kit.array(item.prediction_folder / "a.npy", made)
    assert state({"features": "a.npy"}, item, given(tmp_path, references)) == pytest.approx(expected, abs=1e-4)


def test_objects_are_held_against_text_or_picture(tmp_path: Path, weights: Path, network: Clip) -> None:
    path = tmp_path / "in.png"
    kit.save(kit.picture(9), path)
    text = kit.item(tmp_path, TEXT_TO_MESH, "mesh")
    picture = kit.item(tmp_path, IMAGE_TO_MESH, "mesh", media=kit.input_picture(path))
    kit.video(text.prediction_folder / "views", 3)
    rows = network.pictures([kit.picture(seed) for seed in range(3)])
    state, context = measure("clip_score/render").state, Context(weights=weights)

    by_text, by_picture = (state("views", item, context) for item in (text, picture))

    assert by_text == pytest.approx(100 * float((rows @ network.texts(["a red car"])[0]).mean()), abs=1e-4)
    assert by_picture == pytest.approx(100 * float((rows @ network.pictures([kit.picture(9)])[0]).mean()), abs=1e-4)
    kit.array(text.prediction_folder / "views.npy", rows)
    assert state({"features": "views.npy"}, text, context) == pytest.approx(by_text, abs=1e-4)
    assert state({"features": "views.npy"}, picture, context) == pytest.approx(by_picture, abs=1e-4)


def test_a_cloud_alone_is_drawn(tmp_path: Path, weights: Path) -> None:
    item = kit.item(tmp_path, TEXT_TO_MESH, "points")
    cloud = np.random.default_rng(1).standard_normal((60, 3))
    kit.array(item.prediction_folder / "cloud.npy", cloud)
    state, context = measure("clip_score/render").state, Context(weights=weights)

    assert -100 <= state("cloud.npy", item, context) <= 100
    assert state("cloud.npy", item, context) == state(cloud.tolist(), item, context)


@for_each(("name", "task"), [("clip_score", SOUND), ("clip_image_score", EDITING), ("clip_score/render", TEXT_TO_MESH)])
def test_without_weights_nothing_is_scored(tmp_path: Path, name: str, task: str) -> None:
    item = kit.item(tmp_path, task, reference="1.png")
    for folder in (item.folder, item.prediction_folder):
        kit.save(kit.picture(1), folder / "1.png")

    with pytest.raises(NotEvaluated, match=f"of '{task}' needs the weights openai/clip-vit-base-patch32"):
        measure(name).state("1.png", item, Context(weights=tmp_path))


def test_fid_is_the_distance_of_inception_features(tmp_path: Path, weights: Path) -> None:
    item = kit.item(tmp_path, reference="r.png")
    kit.save(kit.picture(1, (257, 123)), item.prediction_folder / "a.png")
    kit.save(kit.picture(2, (64, 400)), item.folder / "r.png")
    fid = measure("fid")

    state = fid.state("a.png", item, Context(weights=weights))

    assert np.array(state) == pytest.approx(np.array(EXPECTED), rel=1e-4, abs=1e-5)
    states = [state, [state[1], state[0]], [EXPECTED[0], EXPECTED[0]]]
    expected = frechet_from_embeddings([one[0] for one in states], [one[1] for one in states])
    assert fid.value(states) == pytest.approx(expected)
    assert fid.value([[EXPECTED[0]] * 2, [EXPECTED[1]] * 2]) == pytest.approx(0, abs=1e-6)


def test_fid_from_files_needs_no_network(tmp_path: Path) -> None:
    item = kit.item(tmp_path)
    kit.array(item.prediction_folder / "a.npy", EXPECTED[0])

    found = measure("fid").state({"features": "a.npy"}, item, given(tmp_path, EXPECTED[1]))

    assert np.array(found) == pytest.approx(np.array(EXPECTED), rel=1e-6)
    with pytest.raises(DataError, match="one vector of the reference"):
        measure("fid").state({"features": "a.npy"}, item, given(tmp_path, EXPECTED))


def test_fid_without_weights_names_them(tmp_path: Path) -> None:
    item = kit.item(tmp_path)
    kit.save(kit.picture(1), item.prediction_folder / "a.png")

    with pytest.raises(NotEvaluated, match=r"fid of .* needs the weights inception-v3-fid .*inception-v3-fid and name"):
        measure("fid").state("a.png", item, Context(download=True))


def test_motions_are_compared_by_given_features_only(tmp_path: Path) -> None:
    item = kit.item(tmp_path, MOTION, "motion")
    kit.array(item.prediction_folder / "a.npy", [1.0, 2.0])
    fid = measure("fid/motion")

    assert fid.state({"features": "a.npy"}, item, given(tmp_path, [3.0, 4.0])) == [[1, 2], [3, 4]]
    assert fid.value([[[0.0, 0.0], [1.0, 1.0]], [[1.0, 0.0], [2.0, 1.0]]]) == pytest.approx(2)
    with pytest.raises(NotEvaluated, match="fid of 'Text to 3D Motion Generation' needs features of the prediction"):
        fid.state("a.npy", item, given(tmp_path, [3.0, 4.0]))
    with pytest.raises(NotEvaluated, match=r"features of the reference .*`reference_features`"):
        fid.state({"features": "a.npy"}, item, Context())


def test_the_class_of_a_picture_is_held_against_the_label(tmp_path: Path, weights: Path) -> None:
    context = Context(weights=weights)
    network = classifier(context, kit.item(tmp_path))
    state = measure("accuracy/eeg").state
    names = ["tench", "sport car", "tabby"]
    for seed in range(3):
        shown = network.classify(kit.picture(seed))
        for number, name in enumerate(names):
            item = kit.item(tmp_path, EEG, raw={"output": {"label": name}})
            kit.save(kit.picture(seed), item.prediction_folder / "a.png")

            assert state("a.png", item, context) == (100 if number == shown else 0)


def test_without_a_label_the_reference_picture_tells_the_class(tmp_path: Path, weights: Path) -> None:
    context = Context(weights=weights)
    network = classifier(context, kit.item(tmp_path))
    classes = {seed: network.classify(kit.picture(seed)) for seed in range(12)}
    other = next(seed for seed in classes if classes[seed] != classes[0])
    item = kit.item(tmp_path, EEG, reference="r.png")
    kit.save(kit.picture(0), item.folder / "r.png")
    for seed in (0, other):
        kit.save(kit.picture(seed), item.prediction_folder / f"{seed}.png")

    states = [measure("accuracy/eeg").state(f"{seed}.png", item, context) for seed in (0, other)]

    assert states == [100, 0]
    assert measure("accuracy/eeg").value(states) == 50


def test_labels_can_be_predicted_elsewhere(tmp_path: Path) -> None:
    state = measure("accuracy/eeg").state
    item = kit.item(tmp_path, EEG, raw={"output": {"label": "Sport_Car"}})

    assert state({"label": "sport car"}, item, Context()) == 100
    assert state({"label": "tench"}, item, Context()) == 0
    with pytest.raises(NotEvaluated, match="google/vit-base-patch16-224"):
        state("a.png", item, Context())


def test_unknown_labels_are_errors_of_the_item(tmp_path: Path, weights: Path) -> None:
    item = kit.item(tmp_path, EEG, raw={"output": {"label": "unicorn"}})
    kit.save(kit.picture(1), item.prediction_folder / "a.png")

    with pytest.raises(DataError, match="no class 'unicorn'"):
        measure("accuracy/eeg").state("a.png", item, Context(weights=weights))


def test_every_measure_tells_its_needs() -> None:
    assert all(one.needs and one.checked for one in MEASURES)
    assert len({one.name for one in MEASURES}) == len(MEASURES) == 6
