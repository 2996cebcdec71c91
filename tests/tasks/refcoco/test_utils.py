import io
from typing import Any

import datasets
import pytest
from PIL import Image

from lmms_eval.errors import ItemError, TaskError
from lmms_eval.tasks.refcoco.utils import (
    aggregate_accuracy_5,
    aggregate_centre,
    aggregate_iou,
    doc_to_region,
    iou,
    parsed_box,
    process_box,
    process_docs,
)
from tests.cases import for_each

BOX = [0.1, 0.2, 0.5, 0.8]
DOC: dict[str, Any] = {"question_id": "1", "answer": "cup", "bbox": BOX, "image_width": 20, "image_height": 10}


def stored(size: tuple[int, int], orientation: int = 1) -> dict[str, Any]:
    held = io.BytesIO()
    exif = Image.Exif()
    exif[274] = orientation
    Image.new("RGB", size).save(held, "JPEG", exif=exif)
    return {"bytes": held.getvalue(), "path": None}


def test_each_expression_is_a_document_with_its_box_in_shares() -> None:
    rows: dict[str, Any] = {
        "question_id": ["1", "2", "3"],
        "image": [stored((20, 10)), stored((10, 20), 6), {"bytes": b"damaged", "path": None}],
        "answer": [["left", "red"], ["far"], ["lost"]],
        "bbox": [[2.0, 2.0, 8.0, 6.0]] * 3,
    }
    made = process_docs(datasets.Dataset.from_dict(rows).cast_column("image", datasets.Image()))
    plain = made.remove_columns("image").to_list()
    assert [row["answer"] for row in plain] == ["left", "red", "far", "lost"]
    assert [row["bbox"] for row in plain] == [BOX, BOX, BOX, None]
    assert (plain[2]["image_width"], plain[2]["image_height"]) == (20, 10)  # upright
    assert made[1]["image"].size == made[2]["image"].size == (20, 10)
    assert made.column_names[:4] == ["question_id", "image", "answer", "bbox"]


@for_each(
    ("answer", "wanted"),
    [
        ("It is [0.1,0.2, 0.5,0.8]. [1,1,1,1]", BOX),
        ("(0.1, 0.2, 0.5, 0.8)", [0.0] * 4),
        ("", [0.0] * 4),
        ("<think>[0.1, 0.2", [0.0] * 4),
        ("[０, 1, 2, 3]", [0.0, 1.0, 2.0, 3.0]),
        (f"[{'9' * 400}, 1, 2, 3]", [0.0] * 4),
        ("[" * 100_000, [0.0] * 4),
    ],
)
def test_the_first_four_numbers_in_brackets_are_the_box(answer: str, wanted: list[float]) -> None:
    assert parsed_box(answer) == wanted


@for_each(
    ("scale", "answer"),
    [(1, "[0.1, 0.2, 0.5, 0.8]"), (1000, "[100, 200, 500, 800]"), ("pixels", "[2, 2, 10, 8]")],
)
def test_answers_in_other_coordinates_are_scaled(scale: Any, answer: str) -> None:
    made = process_box(DOC, [answer], {"box_scale": scale})
    assert made["refcoco_IoU"]["pred"] == pytest.approx(BOX)
    assert aggregate_iou([made["refcoco_IoU"]]).value == pytest.approx(1.0)


@for_each("scale", [0, "percent", None, float("nan")])
def test_a_scale_that_is_none_is_an_error(scale: Any) -> None:
    with pytest.raises(TaskError, match="box_scale"):
        process_box(DOC, ["[1, 2, 3, 4]"], {"box_scale": scale})


def test_a_picture_of_unknown_size_fails_its_document() -> None:
    with pytest.raises(ItemError, match="'image'"):
        process_box({**DOC, "bbox": None}, ["[1, 2, 3, 4]"])


@for_each(
    ("other", "wanted"),
    [(BOX, 1.0), ([0.5, 0.2, 0.1, 0.8], 0.0), ([0.5, 0.8, 0.1, 0.2], 0.0), ([0.3, 0.2, 0.7, 0.8], 1 / 3)],
)
def test_swapped_corners_share_nothing(other: list[float], wanted: float) -> None:
    assert iou(BOX, other) == pytest.approx(wanted)
    assert iou([0.0] * 4, [0.0] * 4) == 0.0


def test_shares_count_from_the_bound_and_centres_on_the_border() -> None:
    rows = [{"bbox": [0, 0, 2, 2], "pred": [0, 0, 2, 1]}, {"bbox": [0, 0, 2, 2], "pred": [1, 1, 3, 3]}]
    assert aggregate_accuracy_5(rows).value == 0.5
    assert aggregate_centre(rows).value == 1.0
    assert aggregate_iou([]).value is None


def test_regions_are_outlined() -> None:
    doc = {"image": Image.new("RGB", (20, 10)), "bbox": [2, 2, 8, 6], "segmentation": [2.0, 2.0, 10.0, 2.0, 10.0, 8.0]}
    (red,) = doc_to_region(doc, {"region": "bbox"})
    assert [red.getpixel(place) for place in ((2, 2), (10, 8), (5, 5), (11, 8))] == [(255, 0, 0)] * 2 + [(0, 0, 0)] * 2
    (white,) = doc_to_region(doc, {"region": "seg"})
    assert (white.getpixel((10, 8)), white.getpixel((9, 4))) == ((255, 255, 255), (0, 0, 0))
    assert doc["image"].getpixel((2, 2)) == (0, 0, 0)
    for region, column in (("bbox", "bbox"), ("seg", "segmentation")):
        with pytest.raises(ItemError, match=column):
            doc_to_region({**doc, column: [1]}, {"region": region})
