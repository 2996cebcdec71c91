from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_eval.errors import MediaError
from lmms_eval.tasks.general_bench.items import UnreadableAnswer
from tests.tasks.general_bench.measures.region_items import ALL, counts_of, item, value, write_png

PQ = ALL["panoptic_quality"]
ROW = np.arange(12).reshape(1, 12)


def span(start: int, stop: int, label: str | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"mask": counts_of((start <= ROW) & (stop > ROW))}
    return found if label is None else {**found, "label": label}


def test_by_hand():
    truth = item([span(0, 4, "car"), span(4, 8, "car"), span(8, 12, "road")])
    found = [span(0, 3, "car"), span(4, 6, "car"), span(8, 12, "road")]
    # car: one match of IoU 3/4, one false (IoU 1/2 is no match), one missed; road: 1
    assert value(PQ, (found, truth)) == pytest.approx(100 * (0.75 / 2 + 1) / 2)
    assert value(PQ, (None, truth)) == 0
    assert value(PQ, (item([]).reference, item([]))) == 100


def test_wrong_classes_do_not_match():
    assert value(PQ, ([span(0, 4, "bus")], item([span(0, 4, "car")]))) == 0
    assert value(PQ, ([span(0, 4, "bus")], item([span(0, 4)]))) == 100
    assert value(PQ, ([span(0, 4)], item([span(0, 4, "car")]))) == 0


def test_a_segment_is_matched_once():
    assert value(PQ, ([span(0, 4)] * 3, item([span(0, 4)]))) == pytest.approx(100 / 2)


def test_open_ground_counts_for_nothing(tmp_path: Path):
    ids = np.array([[1001, 1001, 1001, 1001, 0, 0, 0, 0, 7, 7, 7, 7]], np.uint16)
    truth = item(write_png(tmp_path / "truth.png", ids), tmp_path)
    # the car reaches three pixels into open ground; another one lies wholly in it
    found = [span(0, 7, "1"), span(7, 8, "1"), span(8, 12, "7")]
    assert value(PQ, (found, truth)) == 100
    assert value(PQ, ("truth.png", truth)) == 100


def test_sizes_must_agree(tmp_path: Path):
    write_png(tmp_path / "a.png", np.ones((2, 3), np.uint8))
    write_png(tmp_path / "b.png", np.ones((3, 2), np.uint8))
    with pytest.raises(UnreadableAnswer, match="2 x 3 pixels where 3 x 2"):
        value(PQ, ("b.png", item("a.png", tmp_path)))


def test_too_many_instances():
    with pytest.raises(UnreadableAnswer, match="at most 1000"):
        value(PQ, ([span(0, 4)] * 1001, item([span(0, 4)])))
    with pytest.raises(MediaError, match="'missing' is not there"):
        value(PQ, ([], item("missing")))
