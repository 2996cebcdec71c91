from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval.errors import DataError, UnknownNameError
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.general_bench.data import forms as field_maps
from lmms_eval.tasks.general_bench.data.forms import load_field_maps
from lmms_eval.tasks.general_bench.facts import find_task, tasks
from tests.cases import for_each


def own(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "maps.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_the_default_map() -> None:
    found = load_field_maps(None)(find_task("Bird Detection"))
    assert found.prompt == (("input", "prompt"), ("input", "question"))
    assert found.media == {
        "image": (("input", "image_file"), ("input", "image")),
        "points": (("input", "pointcloud_file"), ("input", "pointcloud")),
    }
    assert found.output[:5] == tuple(("output", key) for key in ("text", "answer", "boxes", "mask", "points"))
    assert found.form is None and found.is_required
    assert load_field_maps(None)(find_task("3D Detection")) == found


def test_layers_of_the_package() -> None:
    assert ("input", "gt_dir") in load_field_maps(None)(find_task("Video Deraining")).output
    assert load_field_maps(None)(find_task("TextToSpeech")).output == (("output", "text"),)
    assert not load_field_maps(None)(find_task("AudioEdit")).is_required
    assert load_field_maps(None)(find_task("Image Dehazing")).is_required
    assert not load_field_maps(None)(find_task("EEG-based Image Generation")).is_required
    for facts in tasks():
        assert load_field_maps(None)(facts).output


def test_a_users_map(tmp_path: Path) -> None:
    maps = load_field_maps(
        own(
            tmp_path,
            "metrics:\n  rms: {output: target.depth}\n"
            "tasks:\n  indoor depth estimation: {media: {image: rgb}, prompt: [a.b, c]}\n"
            "3D Odometry: {form: poses, reference: optional, output: [output.path]}\n",
        )
    )
    depth = maps(find_task("Indoor Depth Estimation"))
    assert depth.output == (("target", "depth"),) and depth.media == {"image": (("rgb",),)}
    assert depth.prompt == (("a", "b"), ("c",)) and depth.is_required
    odometry = maps(find_task("3D Odometry"))
    assert (odometry.form, odometry.is_required, odometry.output) == ("poses", False, (("output", "path"),))
    assert maps(find_task("Bird Detection")) == load_field_maps(None)(find_task("Bird Detection"))


@for_each(
    ("text", "error", "message"),
    [
        ("Indoor Deph Estimation: {}", UnknownNameError, "did you mean Indoor Depth Estimation"),
        ("sheets: {Image: {}}", UnknownNameError, "unknown sheet 'Image'"),
        ("metrics: {msi: {}}", UnknownNameError, "did you mean .*mse"),
        ("default: {prompts: a}", UnknownNameError, "did you mean prompt.*has prompt, media"),
        ("default: {media: {picture: a}}", UnknownNameError, "image, video, frames"),
        ("default: {media: [a]}", DataError, "keys with values are expected"),
        ("default: {form: odd}", DataError, "`form` is 'odd'; one of text"),
        ("default: {reference: [1]}", DataError, "one of required, optional"),
        ("default: {output: [3]}", DataError, "keys joined by dots"),
        ("default: {output: a..b}", DataError, "keys joined by dots"),
        ("default: 3", DataError, "`default` is 3"),
        ("- a", DataError, "must be a mapping"),
        ("{", DataError, r"maps\.yaml"),
    ],
)
def test_faulty_maps_are_refused(tmp_path: Path, text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        load_field_maps(own(tmp_path, text))


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        load_field_maps(tmp_path / "none.yaml")


def test_the_packages_file_is_no_task() -> None:
    file = Path(field_maps.__file__).with_name("field_maps.yaml")
    assert file.is_file() and Catalogue().add_file(file) == []
