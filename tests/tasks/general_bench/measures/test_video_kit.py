"""The toolkit's metrics over what detectors and networks found elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import Item, UnreadableAnswer
from lmms_eval.tasks.general_bench.measures.contract import Context, Measure
from lmms_eval.tasks.general_bench.measures.registry import measure_for
from lmms_eval.tasks.general_bench.measures.video_networks import MEASURES
from tests.cases import for_each
from tests.tasks.general_bench.networks import kit

SPATIAL = "Spatial Relation Video Generation"
CAMERA = "Camera Motion Video Generation"
COLOUR = "Color-Specific Text to Video Generation"
MATERIAL = "Material-Specific Text to Video Generation"
ACTION = "Action-Specific Text to Video Generation"
SINGLE = "Class-Conditioned Text to Video Generation"
SEVERAL = "Multi-Class-Conditioned Text to Video Generation"
DYNAMIC = "Dynamic Video Generation"
PLANT = "Plant Image to Video Generation"
STILL = {"short_side": 256, "frame_count": 5, "pair_scores": [1.0, 1.0, 1.0, 1.0]}
LIVELY = {"short_side": 256, "frame_count": 5, "pair_scores": [1.0, 9.0, 1.0, 1.0]}
NONE = Context()


def measure(name: str) -> Measure:
    return next(one for one in MEASURES if one.name == name)


def item(tmp_path: Path, task: str, prompt: str = "") -> Item:
    return kit.item(tmp_path, task, "video", prompt=prompt)


def found(label: str, x: float, y: float, caption: str = "") -> dict[str, Any]:
    return {"label": label, "caption": caption, "box": [x, y, 10, 10]}


def test_spatial_relations_take_the_best_pair_of_each_frame(tmp_path: Path) -> None:
    """Frames: apart along the axis (1), one on top of the other (0), only one object (0), best of two pairs (1)."""
    frames = [
        [found("car", 0, 0), found("dog", 50, 5)],
        [found("car", 0, 0), found("dog", 5, 50)],
        [found("car", 0, 0)],
        [found("car", 0, 0), found("dog", 5, 50), found("dog", 50, 5)],
    ]
    wanted = item(tmp_path, SPATIAL, "A car on the left of a dog, front view")

    state = measure("success_rate").state({"detections": frames}, wanted, NONE)

    assert state == [0.5, 1]
    assert measure("success_rate").value([state, [1.0, 1]]) == 75


def test_overlapping_objects_lose_score(tmp_path: Path) -> None:
    """Boxes of 10 by 10, 5 apart: IoU 1/3."""
    wanted = item(tmp_path, SPATIAL, "a car on the right of a dog")

    state = measure("success_rate").state({"detections": [[found("dog", 0, 0), found("car", 5, 0)]]}, wanted, NONE)

    assert state == [pytest.approx(0.3), 1]


def test_colours_count_among_frames_that_describe_one(tmp_path: Path) -> None:
    frames = [
        [found("car", 0, 0, "a red car on a road")],
        [found("car", 0, 0, "a blue car")],
        [found("car", 0, 0, "a parked car")],
        [found("bus", 0, 0, "a red bus")],
    ]
    success = measure("success_rate")

    state = success.state({"detections": frames}, item(tmp_path, COLOUR, "a red car"), NONE)
    left_out = success.state({"detections": frames[2:]}, item(tmp_path, COLOUR, "a red car"), NONE)

    assert state == [0.5, 1]
    assert left_out == [0.0, 0]
    assert success.value([state, left_out]) == 50


@for_each(
    ("scores", "hit"),
    [
        ({"Riding a bike": 0.9, "b": 0.95, "c": 0.1}, 1),
        ({"riding a bike": 0.84, "b": 0.1}, 0),
        ({"b": 0.9}, 0),
        ({"riding a bike": 0.9, **{name: 0.95 for name in "bcdef"}}, 0),
    ],
)
def test_actions_must_be_among_five_and_likely(tmp_path: Path, scores: dict[str, float], hit: int) -> None:
    wanted = item(tmp_path, ACTION, "A person is riding a bike.")

    assert measure("success_rate").state({"action_scores": scores}, wanted, NONE) == [hit, 1]


@for_each("task", [CAMERA, MATERIAL])
def test_camera_and_material_are_viclips_cosine(tmp_path: Path, task: str) -> None:
    wanted = item(tmp_path, task, "a car")
    kit.array(wanted.prediction_folder / "v.npy", [3.0, 4.0])
    kit.array(wanted.prediction_folder / "t.npy", [1.0, 0.0])
    kit.array(tmp_path / "given" / "data" / "7.npy", [0.0, 2.0])
    success = measure("success_rate")

    beside = success.state({"video_features": "v.npy", "text_features": "t.npy"}, wanted, NONE)
    context = Context(options={"reference_features": tmp_path / "given"})

    assert beside == [pytest.approx(0.6), 1]
    assert success.state({"video_features": "v.npy"}, wanted, context) == [pytest.approx(0.8), 1]
    assert success.value([beside]) == pytest.approx(60)


def test_objects_are_counted_by_frame(tmp_path: Path) -> None:
    frames = [[found("dog", 0, 0), found("cat", 0, 0)], [found("dog", 0, 0)], [], [found("cat", 0, 0)]]
    given = {"detections": frames}

    assert measure("single_object_success").state(given, item(tmp_path, SINGLE, "a dog"), NONE) == 50
    assert measure("multi_object_success").state(given, item(tmp_path, SEVERAL, "a dog and a cat"), NONE) == 25
    assert measure("single_object_success").value([50.0, 0.0]) == 25


def test_the_share_of_moving_videos(tmp_path: Path) -> None:
    dynamic = measure("dynamic_degree")

    states = [dynamic.state({"flow_scores": scores}, item(tmp_path, DYNAMIC), NONE) for scores in (STILL, LIVELY)]

    assert states == [0, 100]
    assert dynamic.value(states) == 50


def write_video_parts(wanted: Item) -> dict[str, Any]:
    kit.array(wanted.prediction_folder / "dino.npy", [[1.0, 0.0], [0.6, 0.8], [1.0, 0.0]])
    kit.array(wanted.prediction_folder / "v.npy", [3.0, 4.0])
    kit.array(wanted.prediction_folder / "t.npy", [1.0, 0.0])
    return {
        "features": "dino.npy",
        "video_features": "v.npy",
        "text_features": "t.npy",
        "motion_smoothness": 0.98,
        "flow_scores": LIVELY,
    }


def test_the_composite_is_the_mean_of_four_shares(tmp_path: Path) -> None:
    """Subject: (0.6 + 0.6)/2 and (0.6 + 1)/2 over two pairs."""
    wanted = item(tmp_path, PLANT)
    composite = measure("i2v_composite")

    state = composite.state(write_video_parts(wanted), wanted, NONE)

    assert state == [[pytest.approx(1.4), 2], pytest.approx(0.6), 0.98, 1.0]
    assert composite.value([state]) == pytest.approx((70 + 60 + 98 + 100) / 4)
    other = [[0.6, 2], 0.2, 0.5, 0.0]
    assert composite.value([state, other]) == pytest.approx((50 + 40 + 74 + 50) / 4)


def test_the_subject_part_can_come_from_the_network(tmp_path: Path) -> None:
    from lmms_eval.tasks.general_bench.networks.pictures import dino

    wanted = item(tmp_path, PLANT)
    kit.save_dino(tmp_path / "dino-vitb16")
    kit.video(wanted.prediction_folder / "v", 3)
    parts = {**write_video_parts(wanted), "path": "v"}
    del parts["features"]
    context = Context(weights=tmp_path)
    rows = dino(context, wanted).pictures([kit.picture(seed) for seed in range(3)])
    kit.array(wanted.prediction_folder / "made.npy", rows)

    state = measure("i2v_composite").state(parts, wanted, context)

    assert state == measure("i2v_composite").state({**parts, "features": "made.npy"}, wanted, NONE)


@for_each(
    ("name", "task", "missing"),
    [
        ("success_rate", SPATIAL, "the objects that GRiT finds"),
        ("success_rate", COLOUR, "the objects that GRiT finds"),
        ("success_rate", CAMERA, "ViCLIP's vectors of the video"),
        ("success_rate", MATERIAL, "ViCLIP's vectors of the video"),
        ("success_rate", ACTION, "the scores that UMT-L/16 gives"),
        ("single_object_success", SINGLE, "the objects that GRiT finds"),
        ("multi_object_success", SEVERAL, "the objects that GRiT finds"),
        ("i2v_composite", PLANT, "the motion smoothness that AMT-S measures"),
    ],
)
def test_absent_networks_are_named(tmp_path: Path, name: str, task: str, missing: str) -> None:
    wanted = item(tmp_path, task, "a red car on the left of a dog")
    (wanted.prediction_folder / "v.mp4").write_bytes(b"a video")

    with pytest.raises(NotEvaluated) as absent:
        measure(name).state("v.mp4", wanted, Context(download=True))

    assert f"of '{task}' needs {missing}" in absent.value.reason
    assert "give predictions as {" in absent.value.reason


def test_absent_text_vectors_are_named(tmp_path: Path) -> None:
    wanted = item(tmp_path, CAMERA)
    kit.array(wanted.prediction_folder / "v.npy", np.ones(3))

    with pytest.raises(NotEvaluated, match="ViCLIP's vectors of the prompt"):
        measure("success_rate").state({"video_features": "v.npy"}, wanted, NONE)


def test_items_without_what_is_wanted_fail(tmp_path: Path) -> None:
    given = {"detections": [[found("car", 0, 0)]]}

    for task, prompt in ((SPATIAL, "a car and a dog"), (COLOUR, "a shiny car"), (SPATIAL, "")):
        with pytest.raises(DataError):
            measure("success_rate").state(given, item(tmp_path, task, prompt), NONE)


@for_each("task", [SPATIAL, CAMERA, COLOUR, ACTION, SINGLE, SEVERAL, DYNAMIC, PLANT])
@for_each("prediction", [None, 5, "", "no video", [], {}, {"reply": "I cannot make videos."}])
def test_what_is_no_video_is_a_wrong_answer(tmp_path: Path, task: str, prediction: Any) -> None:
    """And not a reason to leave the whole task without a score."""
    one = item(tmp_path, task, "a red car on the left of a dog")
    with pytest.raises(UnreadableAnswer):
        measure_for(one.facts, "video").state(prediction, one, NONE)
