"""Masks lie over the picture where the metric takes masks; what is none is only text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lmms_eval.cli.main import main
from lmms_eval.utils.redaction import REDACTED
from lmms_eval.viewer.masks import has_masks, masks_of, without_runs
from lmms_eval.viewer.media import MediaFolders, MediaStore
from lmms_eval.viewer.page import ReportOptions
from lmms_eval.viewer.report import write_report
from tests.cases import for_each
from tests.viewer.conftest import Watched, until

FOLDER = "General-Bench-Openset/image/comprehension/Flood"
WIDTH, HEIGHT = 60, 40
SQUARE = [[10, 10, 29, 10, 29, 29, 10, 29]]
RIGHT = {"size": [HEIGHT, WIDTH], "polygons": [[0, 0, 19, 0, 19, 39, 0, 39]]}
KEY_POINTS = "image_comprehension_person_keypoint_detection"
INSTANCES = "image_comprehension_vehicle_instance_segmentation"
VIDEO = "video_comprehension_human_video_object_segmentation"


def line_of(output: Any, prediction: Any, form: str = "mask", **more: Any) -> dict[str, Any]:
    name = "image_comprehension_flood_area_segmentation"
    doc = {"task": name, "folder": FOLDER, "item": json.dumps({"id": 0, "output": output}), "problem": "", "form": form}
    return {
        "doc": {**doc, "head": '{"type": "comprehension"}', "candidates": [], "measured_as": form},
        "sent_media": [{"type": "image", "path": f"/data/{FOLDER}/images/0.png", "width": WIDTH, "height": HEIGHT}],
        "predictions": {"place": 0, "record": {"id": 0, "prediction": prediction}},
        "miou": {"measure": f"miou/{form}", "form": form},
        "target": "reference",
        "filtered_resps": "answer",
        **more,
    }


def drawn(line: dict[str, Any], folder: Path) -> list[tuple[str, np.ndarray]]:
    """Sides with their masks: True where something is drawn."""
    store = MediaStore(folder / "media", "thumbnails")
    shapes = masks_of(line, store, MediaFolders((folder,)))
    found = [(shape["of"], opaque(folder / shape["src"])) for shape in shapes]
    store.close()
    return found


def opaque(file: Path) -> np.ndarray:
    return np.asarray(Image.open(file).convert("RGBA"))[..., 3] > 0


def test_a_mask_is_a_picture_of_the_preview_s_size(tmp_path: Path) -> None:
    (of, truth), (other, said) = drawn(line_of({"mask": RIGHT}, SQUARE), tmp_path)
    assert (of, other) == ("reference", "answer")
    assert truth.shape == said.shape == (341, 512)
    scale = 512 / WIDTH
    assert truth[:, : int(20 * scale)].all()
    assert not truth[:, int(20 * scale) + 1 :].any()
    rows, columns = np.nonzero(said)
    assert (columns.min() / scale, columns.max() / scale) == (pytest.approx(10, abs=0.2), pytest.approx(30, abs=0.2))
    assert (rows.min() / scale, rows.max() / scale) == (pytest.approx(10, abs=0.2), pytest.approx(30, abs=0.2))
    assert 0.3 < said[rows.min() : rows.max(), columns.min() : columns.max()].mean() < 0.9, "answers are striped"


def test_a_reference_is_a_file_beside_the_picture(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER / "images"
    folder.mkdir(parents=True)
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    mask[3, 7] = 255
    Image.fromarray(mask).save(folder / "mask.png")
    line = line_of({"mask": "images/mask.png"}, None)
    line["sent_media"][0]["path"] = str(folder / "0.png")
    ((_, truth),) = drawn(line, tmp_path)
    assert truth.any()
    line = line_of({"mask": "../../mask.png"}, None)
    line["sent_media"][0]["path"] = str(folder / "0.png")
    assert drawn(line, tmp_path) == []


@for_each(
    "text, shown",
    [
        ('{"size": [48, 64], "counts": [1, 2, 3]}', "mask of 64 × 48 pixels"),
        ('{"size": [48, 64], "counts": "packed"}', "mask of 64 × 48 pixels"),
        ('[{"size": [4, 6], "counts": []}, null]', '["mask of 6 × 4 pixels",null]'),
        ('{"masks": {"a": {"size": [4, 6], "counts": []}}}', '{"masks":{"a":"mask of 6 × 4 pixels"}}'),
        ('{"size": [4, 6], "counts": [1, 2', '{"size": [4, 6], "counts": [1, 2'),
        ('the "counts" of it', 'the "counts" of it'),
        ('{"counts": [1]}', '{"counts":[1]}'),
        ("B", "B"),
    ],
)
def test_run_lengths_are_the_size_of_a_mask(text: str, shown: str) -> None:
    assert without_runs(text) == shown


def test_one_pixel_of_a_large_mask_is_seen(tmp_path: Path) -> None:
    high, wide = 2000, 3000
    counts = [high * 1500 + 777, 1, high * wide - high * 1500 - 778]
    line = line_of({"mask": {"size": [high, wide], "counts": counts}}, None)
    line["sent_media"][0] |= {"width": wide, "height": high}
    ((_, truth),) = drawn(line, tmp_path)
    assert truth.sum() == 1
    assert [place[0] for place in np.nonzero(truth)] == [777 * 341 // 2000, 256]


def test_a_picture_that_the_model_made_is_its_answer(tmp_path: Path) -> None:
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    mask[:10] = 255
    Image.fromarray(mask).save(tmp_path / "made.png")
    made = {"type": "image", "path": "made.png", "sha256": "0"}
    line = line_of({"mask": RIGHT}, "made.png", parts=[made])
    assert [of for of, _ in drawn(line, tmp_path)] == ["reference", "answer"]
    del line["parts"]  # a model names no files
    assert [of for of, _ in drawn(line, tmp_path)] == ["reference"]


def test_instances_have_labels_and_frames_their_masks(tmp_path: Path) -> None:
    truth = [{"mask": RIGHT, "label": "Car"}, {"mask": {"size": [HEIGHT, WIDTH], "polygons": SQUARE}, "label": "bus"}]
    line = line_of({"instances": truth}, [{"box": [1, 2, 3, 4], "label": "bus"}], "instances")
    line["doc"]["task"] = INSTANCES
    store = MediaStore(tmp_path / "media", "thumbnails")
    assert [shape["label"] for shape in masks_of(line, store, MediaFolders(()))] == ["car, bus", "bus"]

    sized = {name: {"mask": RIGHT if name else None} for name in ("", "1", "2")}
    line = line_of(sized, [SQUARE, None, SQUARE], "masks")
    line["doc"] |= {"task": VIDEO}
    line["doc"]["item"] = json.dumps({"id": 0, "input": {"video_folder": "v"}, "output": sized})
    media = [{"path": f"/data/{FOLDER}/videos/v/{number}.png", "width": 60, "height": 40} for number in (0, 2)]
    content = [{"text": "Frame 0:"}, {"media": 0}, {"text": "Frame 2:"}, {"media": 1}, {"text": "Find it."}]
    line |= {"sent_media": media, "messages": [{"role": "user", "content": content}]}
    shapes = [(shape["of"], shape["medium"]) for shape in masks_of(line, store, MediaFolders(()))]
    assert shapes == [("answer", 0), ("reference", 1), ("answer", 1)]
    store.close()


def test_key_points_are_points(tmp_path: Path) -> None:
    truth = [{"keypoints": [6, 8, 2, 0, 0, 0, 30, 20, 1], "area": 90, "label": "person"}]
    line = line_of({"keypoints": truth}, [{"keypoints": [[6, 10], [15, 4], [99, 5]]}, {"keypoints": "x"}], "instances")
    line["doc"]["task"] = KEY_POINTS
    store = MediaStore(tmp_path / "media", "thumbnails")
    right = [{"of": "reference", "at": [x / 60, y / 40], "label": "person"} for x, y in ((6, 8), (30, 20))]
    assert masks_of(line, store, MediaFolders(())) == right  # one body that cannot be read makes the answer unreadable
    line["predictions"]["record"]["prediction"].pop()
    said = [{"of": "answer", "at": [x / 60, y / 40], "label": ""} for x, y in ((6, 10), (15, 4))]
    assert masks_of(line, store, MediaFolders(())) == right + said
    assert masks_of(line | {"target": REDACTED}, store, MediaFolders(())) == said
    line["sent_media"] = []
    assert masks_of(line, store, MediaFolders(())) == []
    store.close()


@for_each(
    "prediction",
    [
        {"size": [40, 60], "counts": [1 << 62, 1]},
        {"size": [1 << 40, 1 << 40], "counts": "0"},
        {"size": [40, 60], "counts": [float("nan")]},
        {"size": [40, 60], "counts": "\u202e<script>"},
        {"size": [60, 40], "counts": [2400]},
        {"size": [True, 60], "polygons": SQUARE},
        {"size": [40, 60], "polygons": [[float("inf")] * 6]},
        [[0, 0] * 50_000],
        [[1e300, 0, 5, 5, 9, 9]],
        "/etc/passwd",
        "<img src=x onerror=alert(1)>",
        json.loads("[" * 500 + "]" * 500),
        7,
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_no_mask_is_not_drawn(prediction: Any, tmp_path: Path) -> None:
    assert [of for of, _ in drawn(line_of({"mask": RIGHT}, prediction), tmp_path)] == ["reference"]
    assert drawn(line_of({"mask": prediction}, None), tmp_path) == []


@for_each(
    "change",
    [
        {"task": "none"},
        {"task": ["x"]},
        {"item": "[" * 100_000},
        {"item": 3},
        {"form": ["mask"]},
        {"problem": "gone"},
        {"head": "{"},
    ],
    ids=str,
)
def test_documents_of_other_makers_have_no_masks(change: dict[str, Any], tmp_path: Path) -> None:
    line = line_of({"mask": RIGHT}, SQUARE)
    line["doc"] |= change
    assert drawn(line, tmp_path) == []


def test_masks_are_for_metrics_that_take_them(tmp_path: Path) -> None:
    line = line_of({"mask": RIGHT}, SQUARE)
    assert has_masks(line)
    assert not has_masks({**line, "miou": 1.0})
    assert not has_masks({**line, "doc": None})
    assert [of for of, _ in drawn({**line, "target": "[REDACTED]"}, tmp_path)] == ["answer"]
    turned = {**line["sent_media"][0], "width": HEIGHT, "height": WIDTH}
    assert drawn({**line, "sent_media": [turned]}, tmp_path) == []


def test_masks_are_shown_and_hidden(tmp_path: Path, watched: Watched) -> None:
    name = "general_bench_demo_image_comprehension_flood_area_segmentation"
    arguments = ["--model", "baseline", "--tasks", name, "--output_path", str(tmp_path / "out"), "--log_samples"]
    assert main(["eval", *arguments]) == 0
    write_report([str(tmp_path / "out")], tmp_path / "r", ReportOptions())
    page = watched.open(tmp_path / "r", f"#/baseline/{name}/0")
    until(page, "[...document.querySelectorAll('img.mask')].every(one => one.naturalWidth === 512)")
    picture = page.query_selector("figure .picture > img:not(.mask)").bounding_box()
    assert [one.bounding_box() for one in page.query_selector_all("img.mask")] == [picture, picture]
    words = page.inner_text("main")
    assert "Mask of 64 × 48 pixels" in words and "counts" not in words, "no run lengths"
    for address in (f"#/baseline/{name}", f"#/baseline/{name}?view=grid"):
        page = watched.open(tmp_path / "r", address)
        page.wait_for_selector(".masked")
        until(
            page, "[...document.querySelectorAll('.masked .over')].filter(one => one.naturalWidth === 512).length >= 2"
        )
        assert "mask of 64 × 48 pixels" in page.inner_text("main")
    page = watched.open(tmp_path / "r", f"#/baseline/{name}/0")
    page.click("button:text-is('answer')")
    assert page.query_selector("button:text-is('answer')").get_attribute("aria-pressed") == "false"
    assert [one.get_attribute("class") for one in page.query_selector_all("img.mask")] == ["mask reference"]

    write_report([str(tmp_path / "out")], tmp_path / "single.html", ReportOptions(single_file=True))
    page = watched.open(tmp_path / "single.html", f"#/baseline/{name}/0")
    until(page, "document.querySelectorAll('img.mask[src^=data]').length === 2")

    write_report([str(tmp_path / "out")], tmp_path / "r", ReportOptions(media="none"))
    page = watched.open(tmp_path / "r", f"#/baseline/{name}/0")
    page.wait_for_selector("h2:text-is('Answer')")
    assert page.query_selector("img") is None
