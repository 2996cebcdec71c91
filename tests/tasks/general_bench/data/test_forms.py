from __future__ import annotations

import pytest
from msgspec import structs

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.data.forms import FORMS, form_of, form_of_reference, may_hold
from lmms_eval.tasks.general_bench.facts import find_task, tasks
from tests.cases import for_each

RUNS = {"size": [1, 1], "counts": [0, 1]}


@for_each(
    ("task", "form"),
    [
        ("Time Series", "number"), ("TriviaQA", "text"), ("Crowd Counting", "number"), ("Bird Detection", "boxes"),
        ("Short Expression Visual Grounding", "boxes"), ("Person Keypoint Detection", "instances"),
        ("Vehicle Instance Segmentation", "instances"), ("Ball Tracking", "tube"), ("Human Video Grounding", "tube"),
        ("Infection-map Generation", "map"), ("Road Crack Detection", "mask"), ("Aircraft Detection", "mask"),
        ("Indoor Semantic Segmentation", "labels"), ("People Clothing Segmentation", "labels"),
        ("Human Video Object Segmentation", "masks"), ("Road Scene Panoptic Segmentation", "instances"),
        ("lmage Scene Graph Parsing", "triplets"), ("Pill Anomaly Detection", "map"),
        ("Macaroni Anomaly Detection", "text"), ("Human Video Salient Detection", "saliency"),
        ("Panoramic Optical Flow Estimation", "flow"), ("Indoor Depth Estimation", "depth"),
        ("Street Scene Video Depth Estimation", "depth"), ("Portrait Matting", "alpha"),
        ("Person Hair Matting", "alpha"), ("Image Shadow Removal", "image"), ("3D Normal Estimation", "normals"),
        ("RGB-D to Mesh Reconstruction", "points"), ("3D Odometry", "poses"), ("3D Tracking", "tracks"),
        ("3D Detection", "detections3d"), ("3D Indoor Instance Segmentation", "instances"),
        ("3D Weapon Part Segmentation", "labels"), ("3D Outdoor Semantic Segmentation", "labels"),
        ("EEG-based Image Generation", "image"), ("Video Translation", "video"), ("TextToSpeech", "audio"),
        ("PopMusicGeneration", "notes"), ("Text to 3D Motion Generation", "motion"),
        ("Text to 3D Nature and Biology Mesh Generation", "mesh"), ("Video Semantic Role Labeling", "text"),
        ("Text to 3D Nature and Biology Point Cloud Generation", "points"), ("ImageToSpeech", "audio"),
    ],
)  # fmt: skip
def test_forms_of_rows(task: str, form: str) -> None:
    assert form_of(find_task(task)) == form


def test_every_row_has_a_form_and_every_form_but_image_parts_a_row() -> None:
    assert {form_of(facts) for facts in tasks()} == set(FORMS)


def test_an_unknown_metric_has_none() -> None:
    with pytest.raises(DataError, match="no form of answers is known for the metric 'miou'"):
        form_of(structs.replace(find_task("TriviaQA"), metric="miou"))


@for_each(
    ("task", "key", "value", "form"),
    [
        ("Bird Detection", "boxes", [], "boxes"), ("Bird Detection", "answer", [], "boxes"),
        ("Bird Detection", "instances", [], "instances"), ("Vehicle Instance Segmentation", "boxes", [], "boxes"),
        ("Road Crack Detection", "mask", RUNS, "mask"), ("Road Crack Detection", "labels", "a.png", "labels"),
        ("Indoor Semantic Segmentation", "mask", "a.png", "labels"),
        ("Indoor Semantic Segmentation", "mask", RUNS, "mask"), ("Pill Anomaly Detection", "mask", RUNS, "map"),
        ("Pill Anomaly Detection", "text", "good", "text"), ("Pill Anomaly Detection", "answer", 1, "number"),
        ("Pill Anomaly Detection", "answer", True, "number"), ("Pill Anomaly Detection", "answer", "m/1.png", "map"),
        ("Pill Anomaly Detection", "answer", "1.PNG", "map"), ("Pill Anomaly Detection", "answer", "good.", "text"),
        ("Portrait Matting", "mask", "a.png", "alpha"), ("Crowd Counting", "text", "3", "number"),
        ("Cat Faces Detection", "odd", [], "boxes"), ("Ball Tracking", "boxes", [], "tube"),
        ("TextToSpeech", "text", "words", "audio"), ("Infection-map Generation", "mask", "a.png", "map"),
    ],
)  # fmt: skip
def test_forms_of_items(task: str, key: str, value: object, form: str) -> None:
    assert form_of_reference(find_task(task), key, value) == form


def test_which_keys_can_hold_a_reference() -> None:
    assert may_hold(find_task("TriviaQA"), "answer") and may_hold(find_task("TriviaQA"), "number")
    assert not may_hold(find_task("Ball Image Classification"), "boxes")
    assert not may_hold(find_task("Indoor Depth Estimation"), "boxes")
    assert may_hold(find_task("TextToSpeech"), "text")
