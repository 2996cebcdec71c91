from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval.tasks.general_bench.measures.detection import average_precision, interpolated_precision
from tests.cases import for_each
from tests.tasks.general_bench.measures.region_items import ALL, counts_of, item, value

AP = ALL["detection_ap@50"]


def coco_value(images: list[dict[str, Any]], kind: str, threshold: float) -> float:
    """AP of ``pycocotools`` in percent, its limit of detections a picture lifted."""
    coco_module = pytest.importorskip("pycocotools.coco")
    evaluation = pytest.importorskip("pycocotools.cocoeval")
    names = sorted({one["label"] for image in images for one in image["truth"]})
    names += sorted({one["label"] for image in images for one in image["predicted"]} - set(names))
    truth, found = [], []
    for number, image in enumerate(images):
        for one in image["truth"]:
            annotation = {key: one[key] for key in one if key != "label"}
            truth.append(
                {"id": len(truth) + 1, "image_id": number, "category_id": names.index(one["label"]), "iscrowd": 0}
                | annotation
            )
        for one in image["predicted"]:
            found.append(
                {"image_id": number, "category_id": names.index(one["label"])}
                | {key: one[key] for key in one if key != "label"}
            )
    with contextlib.redirect_stdout(io.StringIO()):
        coco = coco_module.COCO()
        coco.dataset = {
            "info": {},
            "images": [{"id": n, "height": 60, "width": 80} for n in range(len(images))],
            "annotations": truth,
            "categories": [{"id": n, "name": name} for n, name in enumerate(names)],
        }
        coco.createIndex()
        scorer = evaluation.COCOeval(coco, coco.loadRes(found), kind)
        scorer.params.iouThrs = np.array([threshold])
        scorer.params.maxDets = [1000]
        scorer.params.areaRng = [[0, 1e10]]
        scorer.params.areaRngLbl = ["all"]
        scorer.evaluate()
        scorer.accumulate()
    precision = scorer.eval["precision"][0, :, :, 0, 0]
    return float(np.mean([precision[:, k].mean() for k in range(len(names)) if (precision[:, k] > -1).all()])) * 100


def random_box(draw: np.random.Generator) -> list[float]:
    x, y = draw.uniform(0, 40, 2)
    return [float(x), float(y), float(draw.uniform(4, 38)), float(draw.uniform(4, 18))]


def random_images(seed: int, same_scores: bool) -> list[dict[str, Any]]:
    draw = np.random.default_rng(seed)
    images = []
    for _ in range(7):
        truth = [
            {"bbox": random_box(draw), "label": str(draw.choice(["a", "b", "c"]))} for _ in range(draw.integers(6))
        ]
        predicted = []
        for one in truth:
            for _ in range(draw.integers(3)):
                moved = [max(0.5, part + float(draw.normal(0, 2))) for part in one["bbox"]]
                predicted.append({"bbox": moved, "label": one["label"] if draw.random() < 0.9 else "d"})
        predicted += [{"bbox": random_box(draw), "label": "a"} for _ in range(draw.integers(3))]
        draw.shuffle(predicted)  # type: ignore[arg-type]
        for one in predicted:
            one["score"] = float(draw.integers(3) / 2) if same_scores else float(draw.random())
        for one in truth:
            one["area"] = one["bbox"][2] * one["bbox"][3]
        images.append({"truth": truth, "predicted": predicted})
    return images


@for_each("percent", [10, 50, 75])
@for_each("seed", range(6))
def test_boxes_agree_with_cocos_own_tool(seed: int, percent: int):
    images = random_images(seed, same_scores=seed % 2 == 1)
    pairs = [
        (
            [[*one["bbox"], one["label"], one["score"]] for one in image["predicted"]],
            item([[*one["bbox"], one["label"]] for one in image["truth"]]),
        )
        for image in images
    ]
    assert value(ALL[f"detection_ap@{percent}"], *pairs) == pytest.approx(coco_value(images, "bbox", percent / 100))


@pytest.mark.parametrize("seed", range(3))
def test_masks_agree_with_cocos_own_tool(seed: int):
    tool = pytest.importorskip("pycocotools.mask")
    images = random_images(seed + 50, same_scores=False)
    pairs = []
    for image in images:
        for one in (*image["truth"], *image["predicted"]):
            x, y, width, height = one.pop("bbox")
            rows, columns = np.mgrid[:60, :80]
            mask = ((columns - x - width / 2) / width) ** 2 + ((rows - y - height / 2) / height) ** 2 < 0.25
            one["segmentation"] = tool.encode(np.asfortranarray(mask.astype(np.uint8)))
            one["segmentation"]["counts"] = one["segmentation"]["counts"].decode()
            one["area"] = float(mask.sum())
            one["mask"] = counts_of(mask)
        keys = ("mask", "label", "score")
        lists = [[{key: one[key] for key in keys if key in one} for one in image[k]] for k in ("predicted", "truth")]
        pairs.append((lists[0], item(lists[1])))
        for one in (*image["truth"], *image["predicted"]):
            del one["mask"]
    assert value(ALL["detection_ap@50/instances"], *pairs) == pytest.approx(coco_value(images, "segm", 0.5))


@for_each("seed", range(3))
def test_key_points_agree_with_cocos_own_tool(seed: int):
    draw = np.random.default_rng(seed)
    images, pairs = [], []
    for _ in range(6):
        truth, predicted = [], []
        for _ in range(draw.integers(1, 4)):
            points = np.column_stack([draw.uniform(0, 80, 17), draw.uniform(0, 60, 17), draw.integers(0, 3, 17)])
            points[0, 2] = 2
            area = float(draw.uniform(200, 2000))
            truth.append({"keypoints": points.ravel().tolist(), "num_keypoints": 17, "area": area, "label": "person"})
            truth[-1]["bbox"] = [0, 0, 80, 60]
            for _ in range(draw.integers(3)):
                moved = points + np.column_stack([draw.normal(0, 4, (17, 2)), np.zeros(17)])
                predicted.append(
                    {"keypoints": moved.ravel().tolist(), "score": float(draw.random()), "label": "person"}
                )
        images.append({"truth": truth, "predicted": predicted})
        pairs.append(([{k: one[k] for k in ("keypoints", "score")} for one in predicted], item(truth)))
    assert 5 < value(ALL["detection_ap@50/keypoints"], *pairs) == pytest.approx(coco_value(images, "keypoints", 0.5))


def test_case_by_hand():
    truth = item([[0, 0, 10, 10], [20, 20, 10, 10]])
    found = [[0, 0, 10, 10, 0.9], [50, 50, 5, 5, 0.8], [20, 20, 10, 10, 0.7]]
    # precision 1 up to recall 0.5 (51 of the 101 recalls), 2/3 above
    assert value(AP, (found, truth)) == pytest.approx(100 * (51 + 50 * 2 / 3) / 101)


def test_unanswered_misses_all_boxes():
    truth = item([[0, 0, 10, 10, "cat"]])
    assert value(AP, ([[0, 0, 10, 10, "cat"]], truth), (None, truth)) == pytest.approx(100 * 51 / 101)


def test_labels_of_predictions_do_not_matter_where_the_reference_has_none():
    truth = item([[0, 0, 10, 10]])
    assert value(AP, ([[0, 0, 10, 10, "Cat"]], truth), ([[5, 5, 1, 1, "dog"]], item([]))) == 100.0
    assert value(AP, ([[5, 5, 1, 1, "dog", 0.9]], item([])), ([[0, 0, 10, 10, 0.5]], truth)) == 50.0


def test_predictions_without_labels_count_where_the_task_has_one_class():
    assert value(AP, ([[0, 0, 10, 10]], item([[0, 0, 10, 10, "Bird"]]))) == 100.0
    two = item([[0, 0, 10, 10, "bird"], [40, 0, 10, 10, "fish"]])
    assert value(AP, ([[0, 0, 10, 10], [40, 0, 10, 10]], two)) == 0.0


def test_items_with_and_without_labels_do_not_mix():
    plain, two = item([[0, 0, 10, 10]]), item([[0, 0, 10, 10, "bird"], [40, 0, 10, 10, "fish"]])
    assert value(AP, ([], plain), ([[0, 0, 10, 10], [40, 0, 10, 10]], two)) == 0.0


def test_labels_are_folded():
    assert value(AP, ([[0, 0, 9, 9, " traffic_LIGHT"]], item([[0, 0, 9, 9, "Traffic-light"]]))) == 100.0


def test_repeated_boxes_hit_once():
    truth = item([[0, 0, 10, 10], [30, 30, 10, 10]])
    assert value(AP, ([[0, 0, 10, 10]] * 5, truth)) == pytest.approx(100 * 51 / 101)


def test_nothing_there_and_nothing_found():
    assert value(AP, ([], item([]))) == 100.0
    assert value(AP, ([[0, 0, 1, 1]], item([]))) == 0.0


BOX = st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(1, 30), st.integers(1, 30)).map(list)


@given(st.lists(BOX, max_size=6), st.lists(BOX, max_size=6))
def test_is_bounded_and_falls_with_the_threshold(found: list[Any], truth: list[Any]):
    values = [value(ALL[f"detection_ap@{percent}"], (found, item(truth))) for percent in (10, 50, 75)]
    assert 0 <= min(values) <= max(values) <= 100.0000001


@given(st.lists(BOX, max_size=6))
def test_the_reference_itself_is_perfect(truth: list[Any]):
    assert value(ALL["detection_ap@75"], (truth, item(truth))) == pytest.approx(100)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=1, max_size=40))
def test_area_agrees_with_scikit_learn(cases: list[tuple[int, bool]]):
    metrics = pytest.importorskip("sklearn.metrics")
    scores, truth = (np.array(column) for column in zip(*cases, strict=True))
    levels = np.arange(7)
    positive = np.array([np.sum(truth & (scores == level)) for level in levels])
    negative = np.array([np.sum(~truth & (scores == level)) for level in levels])
    expected = metrics.average_precision_score(truth, scores) if truth.any() else 0.0
    assert average_precision(levels, positive, negative) == pytest.approx(expected)


def test_interpolation_without_predictions_is_zero():
    assert interpolated_precision(np.zeros(0), np.zeros(0, dtype=bool), 4) == 0.0


def test_of_equal_overlaps_the_last_box_is_taken():
    truth = [{"bbox": [0, 0, 10, 10], "area": 100, "label": "a"}, {"bbox": [10, 0, 10, 10], "area": 100, "label": "a"}]
    found = [
        {"bbox": [5, 0, 10, 10], "label": "a", "score": 0.9},
        {"bbox": [11, 0, 10, 10], "label": "a", "score": 0.5},
    ]
    pair = [[*one["bbox"], one["score"]] for one in found], item([one["bbox"] for one in truth])
    expected = coco_value([{"truth": truth, "predicted": found}], "bbox", 0.1)
    assert value(ALL["detection_ap@10"], pair) == pytest.approx(expected) == pytest.approx(100 * 51 / 101)
