"""What was found in a video, read from predictions, and what the items ask for."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import Item, UnreadableAnswer
from lmms_eval.tasks.general_bench.measures import kit_math
from lmms_eval.tasks.general_bench.measures import video_networks as kit_answers
from lmms_eval.tasks.general_bench.measures.contract import Context
from tests.cases import for_each
from tests.tasks.general_bench.networks import kit

COLOUR = "Color-Specific Text to Video Generation"
SINGLE = "Class-Conditioned Text to Video Generation"
OBJECT = {"label": "car", "caption": "a red car", "box": [1, 2, 3, 4]}


def item(tmp_path: Path, prompt: str = "", task: str = SINGLE, **inputs: str) -> Item:
    return kit.item(tmp_path, task, "video", prompt=prompt, raw={"input": inputs})


def flo(path: Path, side: float) -> None:
    """A flow file of 4 by 8 pixels (height, width), all moving ``side`` to the right."""
    path.parent.mkdir(exist_ok=True)
    flow = np.zeros((4, 8, 2), "<f4")
    flow[..., 0] = side
    path.write_bytes(struct.pack("<fii", 202021.25, 8, 4) + flow.tobytes())


def test_detections_come_inline_or_from_a_file(tmp_path: Path) -> None:
    wanted = item(tmp_path)
    (wanted.prediction_folder / "d.json").write_text(json.dumps([[OBJECT], []]))
    expected = [[kit_math.Region("a red car", "car", (1, 2, 4, 6))], []]

    assert kit_answers.detections({"detections": [[OBJECT], []]}, wanted) == expected
    assert kit_answers.detections({"detections": "d.json", "path": "v.mp4"}, wanted) == expected
    assert kit_answers.detections({"detections": [[{"label": "car"}]]}, wanted)[0][0].corners == (0, 0, 0, 0)


@for_each(
    "frames",
    [
        [],
        {},
        7,
        [{}],
        [[3]],
        [[{"caption": "a car"}]],
        [[{**OBJECT, "label": 3}]],
        [[{**OBJECT, "caption": None}]],
        [[{**OBJECT, "caption": "x" * 2001}]],
        [[{**OBJECT, "box": [1, 2, 3]}]],
        [[{**OBJECT, "box": [1, 2, 3, float("inf")]}]],
        [[{**OBJECT, "box": [1, 2, 3, 1e300]}]],
        [[{**OBJECT, "box": [1, 2, 3, True]}]],
        [[]] * 257,
        [[OBJECT] * 201],
        "none.json",
        "damaged.json",
        "/dev/zero",
    ],
)
def test_other_detections_are_unreadable(tmp_path: Path, frames: Any) -> None:
    wanted = item(tmp_path)
    (wanted.prediction_folder / "damaged.json").write_text('[[{"label"')

    with pytest.raises(UnreadableAnswer):
        kit_answers.detections({"detections": frames}, wanted)


@for_each("scores", [{}, [], 3, {"a": "b"}, {"a": float("nan")}, {"a": True}, {"a": 10**400}])
def test_other_action_scores_are_unreadable(tmp_path: Path, scores: Any) -> None:
    with pytest.raises(UnreadableAnswer):
        kit_answers.action_scores({"action_scores": scores}, item(tmp_path))


@for_each("value", [-0.1, 1.1, "0.5", True, float("nan"), [1]])
def test_smoothness_is_a_share(tmp_path: Path, value: Any) -> None:
    assert kit_answers.smoothness({"motion_smoothness": 1}, item(tmp_path)) == 1
    with pytest.raises(UnreadableAnswer):
        kit_answers.smoothness({"motion_smoothness": value}, item(tmp_path))


@for_each(
    "scores",
    [
        [],
        {"short_side": 256, "frame_count": 3},
        {"short_side": 256, "frame_count": 3, "pair_scores": [1.0]},
        {"short_side": 256, "frame_count": 1, "pair_scores": []},
        {"short_side": 0, "frame_count": 2, "pair_scores": [1.0]},
        {"short_side": 256.5, "frame_count": 2, "pair_scores": [1.0]},
        {"short_side": 256, "frame_count": 2, "pair_scores": ["a"]},
        {"short_side": 256, "frame_count": 4098, "pair_scores": [1.0] * 4097},
    ],
)
def test_other_flow_scores_are_unreadable(tmp_path: Path, scores: Any) -> None:
    with pytest.raises(UnreadableAnswer):
        kit_answers.moves({"flow_scores": scores}, item(tmp_path), Context())


@for_each(("speed", "moving"), [(0.05, False), (0.2, True)])
def test_flows_are_read_from_a_folder(tmp_path: Path, speed: float, moving: bool) -> None:
    """Short side 4: the bound is 6 * 4 / 256 = 0.094 pixels; one of four pairs must exceed it (four of 16 frames)."""
    wanted = item(tmp_path)
    for number in range(4):
        flo(wanted.prediction_folder / "flows" / f"{number}.flo", speed if number == 2 else 0.0)

    assert kit_answers.moves({"flows": "flows"}, wanted, Context()) is moving


@for_each("flows", ["none", "empty", 3, "/dev"])
def test_other_flows_are_unreadable(tmp_path: Path, flows: Any) -> None:
    wanted = item(tmp_path)
    (wanted.prediction_folder / "empty").mkdir()

    with pytest.raises(UnreadableAnswer):
        kit_answers.moves({"flows": flows}, wanted, Context())


class Shift:
    """In place of RAFT: every pair of frames flows as far as the second is brighter than the first."""

    def __init__(self) -> None:
        self.pairs = 0

    def flows(self, frames: Any) -> Any:
        previous = None
        for frame in frames:
            level = float(np.asarray(frame, float).mean())
            if previous is not None:
                self.pairs += 1
                yield np.full((frame.height, frame.width, 2), level - previous)
            previous = level


def test_raft_looks_at_the_predicted_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lmms_eval.tasks.general_bench.networks import videos as flow

    network = Shift()
    monkeypatch.setattr(flow, "raft", lambda context, item: network)
    wanted = item(tmp_path)
    kit.video(wanted.prediction_folder / "v", 5)
    for number in range(5):
        kit.save(kit.picture(1), wanted.prediction_folder / "still" / f"{number}.png")
    kit.video(wanted.prediction_folder / "one", 1)

    assert kit_answers.moves("v", wanted, Context())
    assert network.pairs == 4
    assert not kit_answers.moves({"path": "still"}, wanted, Context())
    for prediction in ("one", "none", {"scores": 3}):
        with pytest.raises(UnreadableAnswer):
            kit_answers.moves(prediction, wanted, Context())


def test_videos_are_looked_at_eight_times_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import av

    from lmms_eval.tasks.general_bench.networks import videos as flow

    network = Shift()
    monkeypatch.setattr(flow, "raft", lambda context, item: network)
    wanted = item(tmp_path)
    with av.open(str(wanted.prediction_folder / "v.mp4"), "w") as container:
        stream = container.add_stream("mpeg4", rate=24)
        stream.width, stream.height, stream.pix_fmt = 48, 32, "yuv420p"
        for number in range(24):
            frame = av.VideoFrame.from_ndarray(np.asarray(kit.picture(number, (48, 32))), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())

    kit_answers.moves("v.mp4", wanted, Context())

    assert network.pairs == 7


def test_without_raft_nothing_is_decided(tmp_path: Path) -> None:
    with pytest.raises(NotEvaluated, match="raft-large"):
        kit_answers.moves("v", item(tmp_path), Context(weights=tmp_path))


@for_each(
    ("task", "prompt", "inputs", "name"),
    [
        (SINGLE, "a dog", {}, "dog"),
        (SINGLE, "An orange", {}, "orange"),
        (SINGLE, "the traffic light, in the rain", {}, "traffic light"),
        (SINGLE, "a dog and a cat", {}, "dog and cat"),
        (SINGLE, "a dog", {"object": "puppy"}, "puppy"),
        (COLOUR, "a red car", {}, "car"),
        (COLOUR, "an orange", {}, "orange"),
    ],
)
def test_the_wanted_object(tmp_path: Path, task: str, prompt: str, inputs: dict[str, str], name: str) -> None:
    assert kit_answers.wanted_object(item(tmp_path, prompt, task, **inputs)) == name


def test_the_wanted_colour(tmp_path: Path) -> None:
    assert kit_answers.wanted_colour(item(tmp_path, "a shiny Red car with blue wheels")) == "red"
    assert kit_answers.wanted_colour(item(tmp_path, "a red car", color="blue")) == "blue"
    with pytest.raises(DataError, match=r"neither `input\.color` nor the prompt"):
        kit_answers.wanted_colour(item(tmp_path, "a bored car"))


def test_the_wanted_relation(tmp_path: Path) -> None:
    read = kit_answers.wanted_relation(item(tmp_path, "A fire hydrant on the top of the stop sign, side view"))
    told = kit_answers.wanted_relation(
        item(tmp_path, "x", object_a="cup", relationship="on the left of", object_b="fork")
    )

    assert read == ("fire hydrant", "on the top of", "stop sign")
    assert told == ("cup", "on the left of", "fork")
    with pytest.raises(DataError, match="two objects and their relation"):
        kit_answers.wanted_relation(item(tmp_path, "a cup near a fork"))


def test_the_wanted_action(tmp_path: Path) -> None:
    assert kit_answers.wanted_action(item(tmp_path, "A person is Riding a bike.")) == "riding a bike"
    assert kit_answers.wanted_action(item(tmp_path, "x", action="Surfing")) == "surfing"
    with pytest.raises(DataError, match="no prompt"):
        kit_answers.wanted_action(item(tmp_path))
