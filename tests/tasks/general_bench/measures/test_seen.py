"""Pictures, frames, views and texts of predictions and items."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_eval.errors import DataError, MediaError
from lmms_eval.tasks.general_bench.items import UnreadableAnswer
from lmms_eval.tasks.general_bench.measures import seen
from lmms_eval.tasks.general_bench.prompts.point_views import views as point_views
from tests.cases import for_each
from tests.tasks.general_bench.networks import kit

TETRAHEDRON = "OFF\n4 4 0\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n3 0 1 2\n3 0 1 3\n3 0 2 3\n3 1 2 3\n"


def test_a_picture_is_named_by_a_path_or_by_an_entry(tmp_path: Path) -> None:
    item = kit.item(tmp_path)
    name = kit.save(kit.picture(1), item.prediction_folder / "a.png")

    for prediction in (name, {"path": name, "scores": [1]}):
        assert np.array_equal(np.asarray(seen.predicted_picture(prediction, item)), np.asarray(kit.picture(1)))


@for_each("prediction", ["none.png", "text.png", 3, {"scores": [1]}, [], "/dev/zero"])
def test_other_predictions_are_unreadable(tmp_path: Path, prediction: Any) -> None:
    item = kit.item(tmp_path)
    (item.prediction_folder / "text.png").write_text("no picture")

    with pytest.raises(UnreadableAnswer):
        seen.predicted_picture(prediction, item)
    with pytest.raises(UnreadableAnswer):
        list(seen.predicted_frames(prediction, item))


def test_frames_are_read_as_they_are_asked_for(tmp_path: Path) -> None:
    item = kit.item(tmp_path)
    kit.video(item.prediction_folder / "v", 3)
    (item.prediction_folder / "v" / "2.png").write_text("damaged")

    frames = seen.predicted_frames("v", item)

    assert np.array_equal(np.asarray(next(frames)), np.asarray(kit.picture(0)))
    next(frames)
    with pytest.raises(UnreadableAnswer, match="no readable picture"):
        next(frames)


def test_too_many_frames_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen, "MAX_FRAMES", 2)
    item = kit.item(tmp_path)
    kit.video(item.prediction_folder / "v", 3)

    with pytest.raises(UnreadableAnswer, match="more than 2 frames"):
        list(seen.predicted_frames("v", item))


def test_reference_pictures_are_one_or_several(tmp_path: Path) -> None:
    item = kit.item(tmp_path)
    names = [kit.save(kit.picture(seed), item.folder / "images" / f"{seed}.png") for seed in (1, 2)]

    assert len(seen.reference_pictures(names[0], item)) == 1
    assert np.array_equal(np.asarray(seen.reference_pictures(names, item)[1]), np.asarray(kit.picture(2)))
    with pytest.raises(MediaError):
        seen.reference_pictures("none.png", item)
    for wrong in ([], None, ["a.png"] * 65):
        with pytest.raises(DataError):
            seen.reference_pictures(wrong, item)


def test_input_pictures_are_those_of_the_question(tmp_path: Path) -> None:
    path = tmp_path / "in.png"
    kit.save(kit.picture(3), path)

    found = seen.input_pictures(kit.item(tmp_path, media=kit.input_picture(path)))

    assert np.array_equal(np.asarray(found[0]), np.asarray(kit.picture(3)))
    with pytest.raises(DataError, match="no input picture"):
        seen.input_pictures(kit.item(tmp_path))


def test_rendered_views_are_taken_as_they_are(tmp_path: Path) -> None:
    item = kit.item(tmp_path)
    names = [kit.save(kit.picture(seed), item.prediction_folder / f"{seed}.png") for seed in (1, 2)]
    kit.video(item.prediction_folder / "views", 3, 5)

    listed, folder, single = seen.views(names, item), seen.views("views", item), seen.views(names[1], item)

    assert np.array_equal(np.asarray(listed[1]), np.asarray(kit.picture(2)))
    assert [len(found) for found in (listed, folder, single)] == [2, 3, 1]


def test_points_and_meshes_get_four_views(tmp_path: Path) -> None:
    item = kit.item(tmp_path)
    cloud = np.random.default_rng(1).standard_normal((50, 3))
    kit.array(item.prediction_folder / "cloud.npy", cloud)
    (item.prediction_folder / "mesh.off").write_text(TETRAHEDRON)

    expected = [np.asarray(view) for view in point_views(cloud, 224)]

    for prediction in ("cloud.npy", {"path": "cloud.npy"}, cloud.tolist()):
        assert all(
            np.array_equal(np.asarray(a), b) for a, b in zip(seen.views(prediction, item), expected, strict=True)
        )
    assert [view.size for view in seen.views("mesh.off", item)] == [(224, 224)] * 4


@for_each("prediction", ["none.obj", "bad.off", "scene.glb", [], 3, None, ["none.png"], [[1, 2]]])
def test_other_objects_are_unreadable(tmp_path: Path, prediction: Any) -> None:
    item = kit.item(tmp_path)
    (item.prediction_folder / "bad.off").write_text("OFF\n1000000 1 0\n")
    (item.prediction_folder / "scene.glb").write_bytes(b"glTF")

    with pytest.raises(UnreadableAnswer):
        seen.views(prediction, item)


def test_too_many_views_are_refused(tmp_path: Path) -> None:
    item = kit.item(tmp_path)
    kit.video(item.prediction_folder / "views", seen.MAX_VIEWS + 1)

    for prediction in ("views", ["views/0.png"] * (seen.MAX_VIEWS + 1)):
        with pytest.raises(UnreadableAnswer, match="more than 64 views"):
            seen.views(prediction, item)


def test_the_caption_goes_before_the_prompt(tmp_path: Path) -> None:
    captioned = {"output": {"caption": " a blue dog "}}

    assert seen.wanted_text(kit.item(tmp_path, raw=captioned)) == "a blue dog"
    assert seen.wanted_text(kit.item(tmp_path, raw={"output": {"text": "a cat"}})) == "a cat"
    assert seen.wanted_text(kit.item(tmp_path, raw={"output": "a.png"})) == "a red car"
    with pytest.raises(DataError, match="has no text"):
        seen.wanted_text(kit.item(tmp_path, raw={"output": {"text": 3}}, prompt=" "))


def test_texts_of_the_input(tmp_path: Path) -> None:
    assert seen.input_text(kit.item(tmp_path, raw={"input": {"style": " oil "}}), "style") == "oil"
    assert seen.input_text(kit.item(tmp_path, raw={"input": {"style": 3}}), "style") == ""
    assert seen.input_text(kit.item(tmp_path, raw={"input": "oil"}), "style") == ""
