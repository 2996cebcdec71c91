import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import UnreadableAnswer
from lmms_eval.tasks.general_bench.readers.points import (
    MAX_POINTS,
    read_points,
    read_side,
    subset,
    surface_points,
)
from lmms_eval.tasks.general_bench.readers.sides import prediction_of, reference_of
from tests.cases import for_each
from tests.tasks.general_bench.measures.kit3d import an_item

CLOUD = np.arange(12.0).reshape(4, 3)
TASK = "3D Point Cloud Completion"


def test_arrays_tables_and_lists_are_the_same_points(tmp_path):
    np.save(tmp_path / "a.npy", np.hstack([CLOUD, CLOUD]).astype(np.float32))
    (tmp_path / "a.xyz").write_text("\n".join(f"{x} {y} {z} 0.5 0.5" for x, y, z in CLOUD))
    for source in (tmp_path / "a.npy", tmp_path / "a.xyz", CLOUD.tolist()):
        assert np.array_equal(read_points(source), CLOUD)
    np.save(tmp_path / "one.npy", CLOUD[:1])
    assert np.array_equal(read_points(tmp_path / "one.npy"), CLOUD[:1])


def test_predictions_and_references_start_at_their_folders(tmp_path):
    (tmp_path / "pointclouds").mkdir()
    np.save(tmp_path / "pointclouds" / "r.npy", CLOUD)
    np.save(tmp_path / "p.npy", CLOUD + 1)
    item = an_item(tmp_path, TASK, "r.npy")
    assert np.array_equal(read_side(read_points, item.reference, reference_of(item)), CLOUD)
    assert np.array_equal(read_side(read_points, "p.npy", prediction_of(item)), CLOUD + 1)
    assert np.array_equal(read_side(read_points, [[1, 2, 3]], prediction_of(item)), [[1, 2, 3]])


@for_each(
    "value",
    [None, 3, {}, [], [[]], [[1, 2]], [[1, 2, 3], [1, 2]], [1, 2, 3], [["a", 1, 2]], [[1, 2, [3]]], "none.npy", "",
     [[float("nan"), 0, 0]], [[float("inf"), 0, 0]], [[1e300, 0, 0]], [[10**400, 0, 0]], "/dev/zero", "."],
)  # fmt: skip
def test_what_is_no_cloud_counts_as_a_wrong_answer(tmp_path, value):
    with pytest.raises(UnreadableAnswer, match="item 7"):
        read_side(read_points, value, prediction_of(an_item(tmp_path, TASK)))


def test_a_damaged_reference_is_not_the_models_fault(tmp_path):
    np.save(tmp_path / "r.npy", np.full((3, 3), np.nan))
    with pytest.raises(DataError) as caught:
        read_side(read_points, "r.npy", reference_of(an_item(tmp_path, TASK)))
    assert not isinstance(caught.value, UnreadableAnswer)


def test_nothing_in_an_array_file_is_run(tmp_path):
    np.save(tmp_path / "p.npy", np.array([[{}, 1, 2]], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "z.npz", CLOUD)
    (tmp_path / "z.npz").rename(tmp_path / "z.npy")
    (tmp_path / "short.npy").write_bytes(b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'shape': (10**9, 3)")
    np.save(tmp_path / "flat.npy", CLOUD.ravel())
    np.save(tmp_path / "none.npy", CLOUD[:0])
    np.save(tmp_path / "text.npy", np.array([["a", "b", "c"]]))
    for name in ("p.npy", "z.npy", "short.npy", "flat.npy", "none.npy", "text.npy"):
        with pytest.raises(UnreadableAnswer):
            read_side(read_points, name, prediction_of(an_item(tmp_path, TASK)))


def test_an_array_that_claims_more_than_its_file_holds_is_refused(tmp_path):
    np.save(tmp_path / "p.npy", np.zeros((9, 3)))
    raw = (tmp_path / "p.npy").read_bytes().replace(b"(9, 3)", b"(9000000, 3)")
    (tmp_path / "p.npy").write_bytes(raw)
    with pytest.raises(UnreadableAnswer):
        read_side(read_points, "p.npy", prediction_of(an_item(tmp_path, TASK)))


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "p.npy")
    with pytest.raises(UnreadableAnswer, match="is no file"):
        read_side(read_points, "p.npy", prediction_of(an_item(tmp_path, TASK)))


def test_ten_million_points_are_represented_by_a_part_of_them(tmp_path):
    cloud = np.lib.format.open_memmap(tmp_path / "p.npy", "w+", np.float16, (10_000_000, 3))
    cloud[::2] = 1
    cloud.flush()
    found = read_side(read_points, "p.npy", prediction_of(an_item(tmp_path, TASK)))
    assert found.shape == (MAX_POINTS, 3)
    assert 0.45 < found.mean() < 0.55
    assert np.array_equal(found, read_side(read_points, "p.npy", prediction_of(an_item(tmp_path, TASK))))


def test_text_that_is_no_table_is_refused(tmp_path):
    for content in ("", "1 2\n", "1 2 x\n", "1 2 3\n1 2\n", "\0\0\0", "# note\n"):
        (tmp_path / "p.xyz").write_text(content)
        with pytest.raises(UnreadableAnswer):
            read_side(read_points, "p.xyz", prediction_of(an_item(tmp_path, TASK)))


def test_a_mesh_gives_points_of_its_surface(tmp_path):
    (tmp_path / "a.obj").write_text("v 0 0 5\nv 4 0 5\nv 0 2 5\nf 1 2 3\n")
    found = read_points(tmp_path / "a.obj", 4000)
    assert found.shape == (4000, 3)
    assert (found[:, 2] == 5).all()
    assert (found[:, :2] >= 0).all() and (found[:, 0] / 4 + found[:, 1] / 2 <= 1 + 1e-12).all()
    assert found.mean(axis=0) == pytest.approx([4 / 3, 2 / 3, 5], abs=0.06)  # its centre of gravity


def test_triangles_get_points_by_their_area():
    vertices = np.array([[0, 0, 0], [3, 0, 0], [0, 3, 0], [0, 0, 9], [1, 0, 9], [0, 1, 9]], float)
    drawn = surface_points(vertices, np.array([[0, 1, 2], [3, 4, 5]]), 10_000)
    assert (drawn[:, 2] == 0).mean() == pytest.approx(0.9, abs=0.02)


def test_a_mesh_without_area_gives_its_vertices():
    vertices = np.ones((3, 3))
    assert np.array_equal(surface_points(vertices, np.array([[0, 1, 2]]), 5), vertices)


def test_a_mesh_with_a_bad_vertex_is_refused(tmp_path):
    (tmp_path / "a.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv nan 0 0\nf 1 2 3\n")
    with pytest.raises(DataError, match="no finite places"):
        read_points(tmp_path / "a.obj")


@given(st.integers(1, 60), st.integers(1, 60))
def test_a_subset_is_of_different_points_in_their_order(count, most):
    found = subset(np.arange(count), most)
    assert len(found) == min(count, most)
    assert (np.diff(found) > 0).all()
