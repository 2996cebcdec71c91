import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks.general_bench.measures.geometry import ground_distance, iou3d
from lmms_eval.tasks.general_bench.readers.points import Box3D
from tests.cases import for_each

PLACES, SIZES, TURNS = st.floats(-3, 3), st.floats(0.1, 5), st.floats(-7, 7)
BOXES = st.builds(Box3D, PLACES, PLACES, PLACES, SIZES, SIZES, SIZES, TURNS)


def inside(box, points):
    x, y, z = (points - [box.x, box.y, box.z]).T
    cos, sin = math.cos(box.yaw), math.sin(box.yaw)
    along, across = x * cos + y * sin, y * cos - x * sin
    return (abs(along) <= box.dx / 2) & (abs(across) <= box.dy / 2) & (abs(z) <= box.dz / 2)


@for_each(
    ("one", "other", "expected"),
    [
        (Box3D(0, 0, 0, 2, 2, 2), Box3D(0, 0, 0, 2, 2, 2), 1),
        (Box3D(0, 0, 0, 2, 2, 2), Box3D(1, 0, 0, 2, 2, 2), 1 / 3),
        (Box3D(0, 0, 0, 2, 2, 2), Box3D(1, 1, 1, 2, 2, 2), 1 / 15),
        (Box3D(0, 0, 0, 2, 2, 2), Box3D(0, 0, 2, 2, 2, 2), 0),
        (Box3D(0, 0, 0, 2, 2, 2), Box3D(2, 0, 0, 2, 2, 2), 0),
        (Box3D(0, 0, 0, 4, 2, 2), Box3D(0, 0, 0, 4, 2, 2, math.pi), 1),
        (Box3D(0, 0, 0, 4, 2, 2), Box3D(0, 0, 0, 4, 2, 2, math.pi / 2), 1 / 3),
        (Box3D(0, 0, 0, 2, 2, 2), Box3D(0, 0, 0, 2, 2, 2, math.pi / 4), 1 / math.sqrt(2)),
        (Box3D(0, 0, 0, 2, 2, 2), Box3D(0, 0, 0, 1, 1, 1, 0.3), 1 / 8),
        (Box3D(1e9, 1e9, 0, 2, 2, 2), Box3D(1e9 + 1, 1e9, 0, 2, 2, 2), 1 / 3),
    ],
)
def test_hand_computed(one, other, expected):
    assert iou3d(one, other) == pytest.approx(expected, abs=1e-9)


@given(BOXES, BOXES)
def test_symmetric_and_a_share(one, other):
    assert 0 <= iou3d(one, other) <= 1
    assert iou3d(one, other) == pytest.approx(iou3d(other, one), abs=1e-9)
    assert iou3d(one, one) == pytest.approx(1)


def test_against_sampled_volumes():
    source = np.random.default_rng(5)
    points = source.uniform(-4, 4, (400_000, 3))
    for _ in range(12):
        one, other = (
            Box3D(*source.uniform(-1, 1, 3), *source.uniform(1, 4, 3), source.uniform(-4, 4)) for _ in range(2)
        )
        in_one, in_other = inside(one, points), inside(other, points)
        assert iou3d(one, other) == pytest.approx((in_one & in_other).sum() / (in_one | in_other).sum(), abs=0.01)


def test_distance_is_on_the_ground():
    assert ground_distance(Box3D(0, 0, 0, 1, 1, 1), Box3D(3, 4, 99, 1, 1, 1)) == 5
