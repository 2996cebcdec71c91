from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import DataError
from tests.cases import for_each
from tests.tasks.general_bench.data.kit import read

RUNS = {"size": [2, 3], "counts": [1, 5]}
A, B = [1, 2, 3, 4], [5.5, 6, 7, 8]


def question(output: Any, **given: Any) -> dict[str, Any]:
    return {"id": "v1", "input": {"video_folder": "v1", "prompt": "Where?", **given}, "output": output}


def test_questions_on_frames(tmp_path: Path) -> None:
    raw = {
        "id": 4,
        "input": {"video_file_list": ["v/1.jpg", "v/2.jpg"], "prompt": "What?"},
        "output": {"text": "A cat"},
    }
    item = read("Pets Video Question Answering", raw, tmp_path)
    assert (item.form, item.prompt, item.reference) == ("text", "What?", "A cat")
    assert [(one.kind, one.paths) for one in item.media] == [
        ("frames", (tmp_path / "videos/v/1.jpg", tmp_path / "videos/v/2.jpg"))
    ]
    raw["input"] = {"video_file_list": ["v.mp4"], "prompt": "What?"}
    assert read("Pets Video Question Answering", raw, tmp_path).media[0].kind == "video"
    raw["input"] = {"prompt": "What?"}
    with pytest.raises(DataError, match=r"item 4: `input`: `video_file_list` or `video_folder` or .* is missing"):
        read("Pets Video Question Answering", raw, tmp_path)


def test_matching(tmp_path: Path) -> None:
    item = read("Size Aware Object Matching", question({"answer": "B"}), tmp_path)
    assert (item.form, item.reference, item.media[0].paths) == ("text", "B", (tmp_path / "videos" / "v1",))


def test_tracking(tmp_path: Path) -> None:
    item = read("Ball Tracking", question({"answer": [A, None, [0, 0, 0, 0], B]}), tmp_path)
    assert (item.form, item.reference) == ("tube", [A, None, None, B])
    for wrong, message in ((["1,2,3,4"], "`answer` of frame 0"), ("A", "`answer` is 'A'; a list"), (None, "missing")):
        with pytest.raises(DataError, match=message):
            read("Ball Tracking", question({"answer": wrong, "more": 1}), tmp_path)


def test_flow(tmp_path: Path) -> None:
    item = read("Panoramic Optical Flow Estimation", question({"flow": "flow/1.flo"}), tmp_path)
    assert (item.form, item.reference) == ("flow", "flow/1.flo")
    raw = question({"flow": 3})
    del raw["input"]["prompt"]
    with pytest.raises(DataError, match="`flow` is 3; a path"):
        read("Panoramic Optical Flow Estimation", raw, tmp_path)


def test_segmentation(tmp_path: Path) -> None:
    output = {"00001": {"mask": RUNS, "more": 1}, "00000": {"mask": None}, "7": {"mask": {**RUNS, "counts": "05"}}}
    item = read("Human Video Object Segmentation", question(output), tmp_path)
    assert (item.form, item.prompt) == ("masks", "Where?")
    assert item.reference == [RUNS, None, {**RUNS, "counts": "05"}]
    raw = question(None)
    del raw["input"]["prompt"]
    closed = read("Human Video Object Segmentation", raw, tmp_path)
    assert closed.prompt == "" and closed.reference is None
    for wrong in ([RUNS], {"1": RUNS}, {"1": {"mask": "05"}}, {"1": []}):
        with pytest.raises(DataError, match="an object is expected"):
            read("Human Video Object Segmentation", question(wrong), tmp_path)
    with pytest.raises(DataError, match="`video_folder` is missing"):
        read("Human Video Object Segmentation", {"id": 1, "input": {}}, tmp_path)


def test_depth(tmp_path: Path) -> None:
    raw = {"id": 1, "input": "a/1.mp4", "output": "a/1.npz"}
    item = read("Street Scene Video Depth Estimation", raw, tmp_path)
    assert (item.form, item.reference, item.prompt) == ("depth", "depth/a/1.npz", "")
    (tmp_path / "video" / "a").mkdir(parents=True)
    (tmp_path / "video" / "a" / "1.mp4").touch()
    item = read("Street Scene Video Depth Estimation", {**raw, "output": "depth/a/1.npz"}, tmp_path)
    assert item.reference == "depth/a/1.npz" and item.media[0].paths == (tmp_path / "video" / "a" / "1.mp4",)
    assert read("Street Scene Video Depth Estimation", {"id": 1, "input": "a"}, tmp_path).reference is None
    with pytest.raises(DataError, match=r"`output` is {'a': 1}; a path"):
        read("Street Scene Video Depth Estimation", {**raw, "output": {"a": 1}}, tmp_path)


def test_saliency(tmp_path: Path) -> None:
    raw = {"id": 1, "input": {"pred_dir": "p/1", "gt_dir": "gt/1"}}
    item = read("Human Video Salient Detection", raw, tmp_path)
    assert (item.form, item.reference, item.media) == ("saliency", "gt/1", ())


def action(**more: Any) -> dict[str, Any]:
    return {"id": 9, "video_path": "v.mp4", "frame_count": 5, "caption": "a man", "tube_start_frame": 2,
            "tube_end_frame": 4, "original_video_id": "o", **more}  # fmt: skip


@for_each(
    ("task", "more", "tube"),
    [
        ("Spatial-Temporal Static Action Detection", {"trajectory": [A, B, A]}, [None, A, B, A, None]),
        ("Spatial-Temporal Dynamic Action Detection", {"trajectory": [A, B]}, [None, A, B, None, None]),
        ("Spatial-Temporal Dynamic Action Detection", {"trajectory": [A, B, A, B, A]}, [None, B, A, B, None]),
        ("Spatial-Temporal Static Action Detection", {"trajectory": [A, [0] * 4, None]}, [None, A, None, None, None]),
        ("Animal Video Grounding", {"trajectory": {"2": {"bbox": A}, "3": {"bbox": B}}}, [None, None, A, B, None]),
        ("Human Video Grounding", {"trajectory": {"1": {"bbox": A}, "3": {"bbox": B}, "4": {"bbox": A}}},
         [None, None, None, B, None]),
        ("Human Video Grounding", {"trajectory": {"2": None, "3": {}}}, [None] * 5),
        ("Human Video Grounding", {}, None),
    ],
)  # fmt: skip
def test_tubes_of_both_conventions(tmp_path: Path, task: str, more: Any, tube: Any) -> None:
    item = read(task, action(**more), tmp_path)
    assert (item.form, item.prompt, item.reference, item.id) == ("tube", "a man", tube, 9)
    assert [(one.kind, one.paths) for one in item.media] == [("video", (tmp_path / "videos" / "v.mp4",))]


@for_each(
    ("more", "message"),
    [
        ({"trajectory": [A]}, "has 1 boxes; its tube has 3 frames and the video 5"),
        ({"trajectory": [A, B, A], "tube_end_frame": 6, "tube_start_frame": 4}, "4 to 6 of the tube are outside .* 5"),
        ({"trajectory": [A, B], "tube_start_frame": 0, "tube_end_frame": 1}, "outside the video's 5"),
        ({"trajectory": "A"}, "`trajectory` is 'A'; a list of boxes"),
        ({"trajectory": [A, B, ["1", 2, 3, 4]]}, "`trajectory` at 2 is"),
        ({"trajectory": {"a": {"bbox": A}}}, "'a': a frame number is expected"),
        ({"trajectory": {"2": A}}, "an object is expected"),
        ({"trajectory": {"2": {"bbox": "x"}}}, "`bbox` is 'x'"),
        ({"trajectory": [], "frame_count": "5"}, "`frame_count` is '5'; a whole number"),
        ({"trajectory": [], "frame_count": 10**12}, "`frame_count` is 1000000000000; a whole number up to"),
        ({"trajectory": {"9": {"bbox": A}}, "tube_end_frame": 10}, "outside the video's 5"),
        ({"trajectory": [], "tube_start_frame": None}, "`tube_start_frame` is missing"),
        ({"caption": 3}, "`caption` is 3; a text"),
        ({"video_path": None}, "`video_path` is missing"),
    ],
)
def test_faulty_tubes(tmp_path: Path, more: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read("Human Video Grounding", action(**more), tmp_path)


def test_flat_items_without_an_id(tmp_path: Path) -> None:
    assert read("Human Video Grounding", action(id=None), tmp_path).id == "o"
    with pytest.raises(DataError, match="has no `id`"):
        read("Human Video Grounding", action(id=None, original_video_id=None), tmp_path)
    with pytest.raises(DataError, match="has no `id`"):
        read("Ball Tracking", {**question(None), "id": None, "original_video_id": "o"}, tmp_path)
