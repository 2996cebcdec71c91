from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import DataError
from tests.cases import for_each
from tests.tasks.general_bench.data.kit import read

RUNS = {"size": [2, 3], "counts": [1, 5]}
BOX = [1, 2, 3, 4, "cat"]


def item_of(output: Any = None, **given: Any) -> dict[str, Any]:
    return {"id": 1, "input": given, "output": output}


@for_each(
    ("task", "output", "form", "reference"),
    [
        ("Fish Recognition", {"text": "Cod"}, "text", "Cod"),
        ("Fish Recognition", {"answer": ["a", 2]}, "text", ["a", "2"]),
        ("Fish Recognition", {"text": "Cod", "boxes": [BOX]}, "text", "Cod"),
        ("Bird Detection", {"boxes": [BOX]}, "boxes", [BOX]), ("Bird Detection", {"answer": []}, "boxes", []),
        ("Bird Detection", {"text": "two", "boxes": [BOX]}, "boxes", [BOX]),
        ("Bird Detection", {"instances": [{"box": BOX}]}, "instances", [{"box": BOX}]),
        ("Person Keypoint Detection", {"keypoints": [{}]}, "instances", [{}]),
        ("Crowd Counting", {"number": 3}, "number", 3), ("Crowd Counting", {"text": "3"}, "number", "3"),
        ("Crowd Counting", {"answer": 3.5}, "number", 3.5),
        ("Road Crack Detection", {"mask": RUNS}, "mask", RUNS),
        ("Road Crack Detection", {"mask": "m/1.png"}, "mask", "m/1.png"),
        ("Indoor Semantic Segmentation", {"mask": "m/1.png"}, "labels", "m/1.png"),
        ("Indoor Semantic Segmentation", {"labels": "m/1.npy"}, "labels", "m/1.npy"),
        ("Pill Anomaly Detection", {"mask": "m/1.png"}, "map", "m/1.png"),
        ("Pill Anomaly Detection", {"text": "good"}, "text", "good"),
        ("Pill Anomaly Detection", {"answer": True}, "number", 1),
        ("Indoor Depth Estimation", {"depth": "d/1.png"}, "depth", "d/1.png"),
        ("Portrait Matting", {"alpha": "a.png"}, "alpha", "a.png"),
        ("Portrait Matting", {"mask": "a.png"}, "alpha", "a.png"),
        ("lmage Scene Graph Parsing", {"triplets": [["a", "on", "b"]]}, "triplets", [["a", "on", "b"]]),
        ("3D Odometry", {"poses": "p.txt"}, "poses", "p.txt"), ("3D Tracking", {"tracks": []}, "tracks", []),
        ("3D Detection", {"boxes": [[1, 2, 3]]}, "detections3d", [[1, 2, 3]]),
        ("3D Point Cloud Completion", {"points": "p.npy"}, "points", "p.npy"),
        ("3D Weapon Part Segmentation", {"labels": "l.npy"}, "labels", "l.npy"),
        ("Image Dehazing", {"image": "i.png"}, "image", "i.png"),
        ("Image Dehazing", {"image": ["1.png"]}, "image", ["1.png"]),
        ("EEG-based Image Generation", {"label": 3}, "image", None), ("AudioEdit", {"caption": "x"}, "audio", None),
        ("TextToSpeech", {"text": "Hello"}, "audio", "Hello"),
        ("EmotionalSpeechSynthesis", {"audio_file": "r.wav"}, "audio", "r.wav"),
        ("Human Video Generation", {"video": "v/1"}, "video", "v/1"),
        ("Text to 3D Motion Generation", {"motion": "m.npy"}, "motion", "m.npy"),
    ],
)  # fmt: skip
def test_references(tmp_path: Path, task: str, output: Any, form: str, reference: Any) -> None:
    item = read(task, item_of(output, prompt="Do it."), tmp_path)
    assert (item.form, item.reference, item.prompt) == (form, reference, "Do it.")
    closed = read(task, {"id": 1, "input": {}}, tmp_path)
    assert closed.reference is None and closed.prompt == "" and closed.media == ()


def test_media(tmp_path: Path) -> None:
    (tmp_path / "2.png").touch()
    item = read("Fish Recognition", item_of({"text": "x"}, image_file=["1.png", "2.png"]), tmp_path)
    assert [(one.kind, one.paths) for one in item.media] == [
        ("image", (tmp_path / "images" / "1.png",)), ("image", (tmp_path / "images" / "2.png",)),
    ]  # fmt: skip
    item = read("Fish Recognition", item_of({"text": "x"}, image_file="2.png"), tmp_path)
    assert item.media[0].paths == (tmp_path / "2.png",)
    item = read("3D Odometry", item_of(None, pointcloud_file="1.ply"), tmp_path)
    assert [(one.kind, one.paths) for one in item.media] == [("points", (tmp_path / "pointclouds" / "1.ply",))]
    item = read("VideoToAudio", item_of(None, video_file="1.mp4", audio_file="1.wav", image_file="1.png"), tmp_path)
    assert {one.kind for one in item.media} == {"video", "audio", "image"}


def test_videos_that_are_restored_and_translated(tmp_path: Path) -> None:
    item = read("Video Deraining", {"id": 1, "input": {"pred_dir": "p", "gt_dir": "g"}}, tmp_path)
    assert (item.form, item.reference) == ("video", "g")
    raw = {"id": 1, "input": {"source_prompt": "s", "target_prompt": "t"}, "output": {"frame_dir": "f"}}
    item = read("Video Translation", raw, tmp_path)
    assert (item.form, item.reference, item.prompt) == ("video", None, "t")
    raw = {"id": 1, "input": {"prompt": "p", "image": "1.png"}, "more": 1}
    item = read("Pet Image to Video Generation", raw, tmp_path)
    assert item.prompt == "p" and item.media[0].paths[0].name == "1.png" and item.raw == raw


@for_each(
    ("task", "output", "has"),
    [
        ("Fish Recognition", {"species": "Cod", "age": 3}, "the item has output keys age, species;"),
        ("Fish Recognition", {"boxes": [BOX]}, "has output keys boxes"),
        ("Indoor Depth Estimation", {"boxes": [BOX]}, "has output keys boxes"),
        ("Fish Recognition", "Cod", "the item's output is no object;"),
        ("3D Odometry", {"path": "x"}, "has output keys path"),
        ("Image Dehazing", {"clear": "x"}, "has output keys clear"),
        ("TextToSpeech", {"transcript": "x"}, "has output keys transcript"),
    ],
)
def test_unknown_schemas_are_not_evaluated(tmp_path: Path, task: str, output: Any, has: str) -> None:
    with pytest.raises(NotEvaluated, match=f"^not evaluated: schema unknown: .*{has}.*give a field map.*{task}"):
        read(task, item_of(output), tmp_path)


def test_a_users_field_map_reads_them(tmp_path: Path) -> None:
    own = tmp_path / "maps.yaml"
    own.write_text(
        "Fish Recognition: {output: target.species, prompt: question, media: {image: picture}}\n"
        "Multimodal Sarcasm Detection: {form: text, output: [label], prompt: utterance}\n"
        "Bird Sound Detection: {form: number, output: [count], prompt: q, media: {audio: wav}}\n"
    )
    raw = {"id": 1, "question": "Which?", "picture": "1.png", "target": {"species": "Cod"}, "output": {"odd": 1}}
    item = read("Fish Recognition", raw, tmp_path, own)
    assert (item.reference, item.prompt, item.media[0].kind) == ("Cod", "Which?", "image")
    item = read("Multimodal Sarcasm Detection", {"id": 1, "utterance": "Great.", "label": "yes"}, tmp_path, own)
    assert (item.form, item.reference, item.prompt, item.media) == ("text", "yes", "Great.", ())
    item = read("Bird Sound Detection", {"id": 1, "q": "How many?", "count": 2, "wav": "1.wav"}, tmp_path, own)
    assert (item.form, item.reference, item.media[0].kind) == ("number", 2, "audio")


@for_each(
    ("task", "raw", "message"),
    [
        ("Fish Recognition", item_of({"text": {"a": 1}}), "`text` is {'a': 1}"),
        ("Bird Detection", item_of({"boxes": "1,2,3,4"}), "`boxes` is '1,2,3,4'; a list is expected"),
        ("Bird Detection", item_of({"boxes": {"a": 1}}), "a list is expected"),
        ("Crowd Counting", item_of({"number": "three"}), "`number` is 'three'; a number"),
        ("Crowd Counting", item_of({"number": "1e999"}), "a number is expected"),
        ("Road Crack Detection", item_of({"mask": 3}), "a path, a list or an object"),
        ("Indoor Depth Estimation", item_of({"depth": [[1]]}), "a path is expected"),
        ("Indoor Depth Estimation", item_of({"depth": "/etc/passwd"}), "leads out of the task's folder"),
        ("Image Dehazing", item_of({"image": ["a", "../b"]}), "leads out"),
        ("Image Dehazing", item_of({"image": []}), "a path is expected"),
        ("3D Odometry", item_of({"poses": 1}), "a path or a list is expected"),
        ("Fish Recognition", item_of({"text": "a"}, prompt=["p"]), r"`prompt` is \['p'\]; a text"),
        ("Fish Recognition", item_of({"text": "a"}, image_file=3), "`image_file` is 3; a list of texts"),
        ("Fish Recognition", item_of({"text": "a"}, image_file=["a"] * 100_001), "a list of at most 100000 files"),
        ("Fish Recognition", {"id": 1, "input": [1], "output": {"text": "a"}}, r"`input` is \[1\]; an object"),
    ],
)
def test_wrong_kinds_name_the_key(tmp_path: Path, task: str, raw: Any, message: str) -> None:
    with pytest.raises(DataError, match=f"item 1.*{message}"):
        read(task, raw, tmp_path)
