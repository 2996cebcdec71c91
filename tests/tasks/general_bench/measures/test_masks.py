from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lmms_eval.errors import ConfigError, DataError, LmmsEvalError
from lmms_eval.tasks.general_bench.items import UnreadableAnswer
from lmms_eval.tasks.general_bench.measures.masks import authors_structure_measure
from tests.cases import for_each
from tests.tasks.general_bench.measures.region_items import ALL, CONTEXT, counts_of, item, value, write_png

HALF = np.zeros((4, 6), bool)
HALF[:, :3] = True
THIRD = np.zeros((4, 6), bool)
THIRD[:, :2] = True
NONE = np.zeros((4, 6), bool)


def rle(mask: np.ndarray) -> dict[str, Any]:
    return counts_of(mask)


def test_masks_by_hand():
    pairs = [(rle(THIRD), item(rle(HALF))), (rle(NONE), item(rle(NONE)))]
    assert value(ALL["miou/mask"], *pairs) == pytest.approx((200 / 3 + 100) / 2)
    assert value(ALL["dice"], *pairs) == pytest.approx((80 + 100) / 2)
    assert value(ALL["dice"], (rle(NONE), item(rle(HALF)))) == 0


@given(*[arrays(bool, (3, 5))] * 2)
def test_iou_of_masks_agrees_with_cocos_tool(one: np.ndarray, other: np.ndarray):
    tool = pytest.importorskip("pycocotools.mask")
    if not (one | other).any():
        return
    first, second = (tool.encode(np.asfortranarray(mask.astype(np.uint8))) for mask in (one, other))
    expected = 100 * float(tool.iou([first], [second], [0])[0, 0])
    assert value(ALL["miou/mask"], (rle(one), item(rle(other)))) == pytest.approx(expected)


def test_videos_are_pooled_and_then_averaged():
    first = ([rle(HALF), rle(NONE)], item([rle(HALF), rle(HALF)], form="masks"))
    second = ([rle(HALF)], item([rle(HALF)], form="masks"))
    assert value(ALL["miou/video"], first, second) == pytest.approx(75)


def test_classes_are_pooled_over_pictures(tmp_path: Path):
    first, second = np.zeros((2, 4), np.uint8), np.ones((2, 4), np.uint8)
    found = first.copy()
    found[0, 0], found[0, 1] = 1, 7
    for name, array in (("a.png", first), ("b.png", second), ("c.png", found)):
        write_png(tmp_path / name, array)
    pairs = [("c.png", item("a.png", tmp_path)), ("b.png", item("b.png", tmp_path))]
    # class 0: 6 of 8; class 1: 8 of 9; class 7 is not in the reference
    assert value(ALL["miou/labels"], *pairs) == pytest.approx(100 * (6 / 8 + 8 / 9) / 2)
    assert value(ALL["miou/labels"], pairs[0], (None, pairs[1][1])) == pytest.approx(100 * (6 / 8 + 0) / 2)


def test_unlabelled_pixels_do_not_count(tmp_path: Path):
    np.save(tmp_path / "truth.npy", np.array([0, 0, 1, -1, 9]))
    np.save(tmp_path / "found.npy", np.array([0, 1, 1, 0, 0], np.uint8))
    one = item("truth.npy", tmp_path, ignore=9)
    assert value(ALL["miou/points"], ("found.npy", one)) == pytest.approx(50)
    assert ALL["miou/points"].state("found.npy", one, CONTEXT) == {"0": [1, 2, 1], "1": [1, 1, 2]}
    assert ALL["miou/points"].unanswered is not None
    assert ALL["miou/points"].unanswered(one, CONTEXT) == {"0": [0, 2, 0], "1": [0, 1, 0]}
    assert value(ALL["miou/points"], (None, one)) == 0
    np.save(tmp_path / "short.npy", np.array([0, 1]))
    with pytest.raises(UnreadableAnswer, match="size 2 where the reference has 5"):
        value(ALL["miou/points"], ("short.npy", one))
    with pytest.raises(DataError, match="ignore"):
        value(ALL["miou/points"], ("found.npy", item("truth.npy", tmp_path, ignore="9")))


@settings(max_examples=30)
@given(*[arrays(np.uint8, 30, elements=st.integers(0, 4))] * 2)
def test_classes_agree_with_scikit_learn(tmp_path_factory: pytest.TempPathFactory, one: np.ndarray, other: np.ndarray):
    metrics = pytest.importorskip("sklearn.metrics")
    folder = tmp_path_factory.mktemp("labels")
    np.save(folder / "one.npy", one)
    np.save(folder / "other.npy", other)
    known = np.unique(other)
    expected = 100 * metrics.jaccard_score(other, one, labels=known, average="macro", zero_division=0)
    assert value(ALL["miou/points"], ("one.npy", item("other.npy", folder))) == pytest.approx(expected)


def test_parts_of_shapes(tmp_path: Path):
    np.save(tmp_path / "truth.npy", np.array([1, 1, 1, 2]))
    np.save(tmp_path / "found.npy", np.array([1, 1, 2, 2]))
    one = item("truth.npy", tmp_path)
    assert value(ALL["instance_miou"], ("found.npy", one), ("truth.npy", one)) == pytest.approx(
        (100 * (2 / 3 + 1 / 2) / 2 + 100) / 2
    )
    listed = item("truth.npy", tmp_path, parts=[1, 2, 3])
    assert value(ALL["instance_miou"], ("found.npy", listed)) == pytest.approx(100 * (2 / 3 + 1 / 2 + 1) / 3)
    with pytest.raises(DataError, match="parts"):
        value(ALL["instance_miou"], ("found.npy", item("truth.npy", tmp_path, parts=[])))


def test_saliency(tmp_path: Path):
    full = HALF.astype(np.uint8) * 255
    for folder in ("truth", "found"):
        for number in (1, 2, 10):
            write_png(tmp_path / folder / f"{number}.png", full)
    write_png(tmp_path / "found" / "2.png", 255 - full)
    one = item("truth", tmp_path, form="saliency")
    assert value(ALL["s_measure"], ("truth", one)) == pytest.approx(100)
    worse = value(ALL["s_measure"], ("found", one))
    assert worse == pytest.approx(value(ALL["s_measure"], ([rle(HALF), rle(~HALF), rle(HALF)], one)))
    assert 60 < worse < 80
    write_png(tmp_path / "small.png", full[:2])
    with pytest.raises(UnreadableAnswer, match="6 x 2 pixels where 6 x 4"):
        value(ALL["s_measure"], ("small.png", item("truth/1.png", tmp_path)))


def test_saliency_by_the_authors_formula():
    one, context = item([rle(HALF)] * 2, form="saliency"), CONTEXT.having(s_measure="authors")
    assert ALL["s_measure"].state([rle(HALF)] * 2, one, context) == pytest.approx(100, abs=1e-4)
    found = ALL["s_measure"].state([rle(THIRD)] * 2, one, context)
    assert found == pytest.approx(100 * authors_structure_measure(THIRD.astype(float), HALF))
    assert found != pytest.approx(value(ALL["s_measure"], ([rle(THIRD)] * 2, one)))
    corner = np.zeros((4, 6), bool)
    corner[0, 5] = True
    with pytest.raises(DataError, match="no value where an object's centroid"):
        ALL["s_measure"].state([rle(HALF)], item([rle(corner)], form="saliency"), context)
    with pytest.raises(ConfigError, match="s_measure: 'x' is neither"):
        ALL["s_measure"].state([rle(HALF)] * 2, one, CONTEXT.having(s_measure="x"))


@settings(max_examples=40)
@given(st.lists(st.tuples(*[arrays(np.uint8, (3, 3))], arrays(bool, (3, 3))), min_size=1, max_size=3))
def test_anomaly_maps_agree_with_scikit_learn(
    tmp_path_factory: pytest.TempPathFactory, pictures: list[tuple[np.ndarray, np.ndarray]]
):
    metrics = pytest.importorskip("sklearn.metrics")
    folder = tmp_path_factory.mktemp("maps")
    truth = np.concatenate([mask.ravel() for _, mask in pictures])
    if not truth.any():
        return
    pairs = []
    for number, (levels, mask) in enumerate(pictures):
        stored = levels if number % 2 else levels.astype(np.uint16) * 257
        pairs.append((write_png(folder / f"{number}.png", stored), item(rle(mask), folder)))
    expected = 100 * metrics.average_precision_score(truth, np.concatenate([levels.ravel() for levels, _ in pictures]))
    assert value(ALL["average_precision"], *pairs) == pytest.approx(expected)


def test_anomaly_maps_of_sound_objects_and_missing_ones(tmp_path: Path):
    measure = ALL["average_precision"]
    one = item(rle(HALF), tmp_path)
    assert value(measure, (rle(HALF), one)) == 100
    write_png(tmp_path / "flat.png", np.zeros((2, 2), np.uint8))
    assert value(measure, (rle(HALF), one), ("flat.png", item("good", tmp_path))) == 100
    # all 24 pixels missed: the 12 sound ones rank first, then the 12 anomalous ones
    expected = 100 * np.mean([place / (12 + place) for place in [12] * 12])
    assert value(measure, (None, one)) == pytest.approx(expected)
    assert value(measure, (None, item(0))) == 0


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1))
def test_scores_of_pictures_agree_with_scikit_learn(cases: list[tuple[int, bool]]):
    metrics = pytest.importorskip("sklearn.metrics")
    scores, truth = zip(*cases, strict=True)
    if not any(truth):
        return
    pairs = [(score, item(int(wanted))) for score, wanted in cases]
    expected = 100 * metrics.average_precision_score(truth, scores)
    assert value(ALL["average_precision/image"], *pairs) == pytest.approx(expected)


def test_verdicts_of_pictures_in_words():
    measure = ALL["average_precision/image"]
    assert value(measure, ("Anomalous", item("defect")), ("normal", item("good"))) == 100
    assert value(measure, ("0.75", item(1)), ("0.5", item(0))) == 100
    assert value(measure, (0.2, item(1)), (None, item(0))) == 50
    for answer in ("it looks fine", "nan", float("inf"), None, [1], "1" * 1000):
        with pytest.raises(UnreadableAnswer):
            measure.state(answer, item(1), CONTEXT)
    with pytest.raises(DataError, match="neither normal nor anomalous"):
        measure.state(1, item("perhaps"), CONTEXT)


HOSTILE: list[Any] = [
    None, 7, True, "", "missing.png", "/dev/zero", "/", "\0", {}, {"size": 3}, [[]], [None], [[1, 2]], [{"mask": 3}],
    [{"indices": [-1]}], [{"indices": ["a"]}], [{"indices": "missing.npy"}], {"map": "missing.png", "segments": []},
    {"map": 3, "segments": 3}, [{"box": [1, 2]}], ["a", "b", "c"], [["a", 1, "b"]], "pickle.npy", "huge.npy",
    "floats.npy", "text.png", "deep.npy",
]  # fmt: skip


@for_each("name", sorted(ALL))
def test_hostile_answers_are_unreadable(name: str, tmp_path: Path):
    np.save(tmp_path / "pickle.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.save(tmp_path / "floats.npy", np.array([0.5, 1.5]))
    np.save(tmp_path / "deep.npy", np.zeros((2, 2, 2, 2), np.uint8))
    np.save(tmp_path / "truth.npy", np.arange(4))
    (tmp_path / "text.png").write_text("text")
    head = b"\x93NUMPY\x01\x00v\x00{'descr': '<i8', 'fortran_order': False, 'shape': (100000000000,), }"
    (tmp_path / "huge.npy").write_bytes(head.ljust(127) + b"\n" + bytes(64))
    reference = {
        "boxes": [[0, 0, 1, 1]], "tube": [[0, 0, 1, 1]], "triplets": [["a", "on", "b"]], "labels": "truth.npy",
        "instances": [{"mask": rle(HALF)}], "mask": rle(HALF), "masks": [rle(HALF)] * 3, "number": 1,
        "saliency": [rle(HALF)] * 3, "map": rle(HALF),
    }[ALL[name].form]  # fmt: skip
    if "keypoints" in name:
        reference = [{"keypoints": [[0, 0]] * 17, "area": 3}]
    one = item(reference, tmp_path)
    begin = time.monotonic()
    for answer in HOSTILE:
        if (name, answer) in (("average_precision/image", 7), ("average_precision/image", True)):
            continue
        try:
            ALL[name].state(answer, one, CONTEXT)
        except UnreadableAnswer:
            continue
        except LmmsEvalError as error:
            pytest.fail(f"{answer!r}: {error!r}")
        assert (answer in ([None],) and name == "auc") or (name == "m_viou" and answer == [None]), answer
    assert time.monotonic() - begin < 10


def test_damaged_references_are_not_blamed_on_the_model(tmp_path: Path):
    (tmp_path / "text.png").write_text("text")
    for name, answer in (("miou/mask", rle(HALF)), ("miou/labels", "text.png"), ("s_measure", "text.png")):
        with pytest.raises(LmmsEvalError) as caught:
            ALL[name].state(answer, item("text.png", tmp_path), CONTEXT)
        assert not isinstance(caught.value, UnreadableAnswer)
