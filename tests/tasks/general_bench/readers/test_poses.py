import numpy as np
import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import UnreadableAnswer
from lmms_eval.tasks.general_bench.readers.points import read_poses, read_side
from lmms_eval.tasks.general_bench.readers.sides import prediction_of, reference_of
from tests.cases import for_each
from tests.tasks.general_bench.measures.kit3d import an_item

TASK = "3D Odometry"
POSES = np.tile(np.eye(4), (3, 1, 1))
POSES[:, 0, 3] = (0, 1, 2)
ROWS = POSES[:, :3].reshape(3, 12)


def test_all_forms_are_the_same_poses(tmp_path):
    np.savetxt(tmp_path / "a.txt", ROWS)
    np.savetxt(tmp_path / "b.txt", POSES.reshape(3, 16))
    np.save(tmp_path / "a.npy", POSES)
    np.save(tmp_path / "b.npy", POSES[:, :3])
    np.save(tmp_path / "c.npy", ROWS)
    for name in ("a.txt", "b.txt", "a.npy", "b.npy", "c.npy"):
        assert np.array_equal(read_poses(tmp_path / name), POSES)
    for value in (ROWS.tolist(), POSES.tolist(), POSES[:, :3].tolist()):
        assert np.array_equal(read_poses(value), POSES)
    item = an_item(tmp_path, TASK, "a.txt", "poses")
    assert np.array_equal(
        read_side(read_poses, item.reference, reference_of(item)), read_side(read_poses, "b.npy", prediction_of(item))
    )


@for_each(
    "value",
    [None, [], {}, [1], [[1] * 11], [[1] * 13], [[0] * 12], [[float("nan"), *ROWS[0][1:]]], [["x", *ROWS[0][1:]]],
     [[1e13, *ROWS[0][1:]]], [ROWS[0].tolist(), [1, 2]], "none.txt", [[[1, 2, 3]] * 3]],
)  # fmt: skip
def test_what_are_no_poses_counts_as_a_wrong_answer(tmp_path, value):
    with pytest.raises(UnreadableAnswer, match="item 7"):
        read_side(read_poses, value, prediction_of(an_item(tmp_path, TASK)))


def test_damaged_files_are_refused(tmp_path):
    for name, content in (("a.txt", ""), ("a.txt", "\n\n"), ("a.txt", "1 2 3\n"), ("a.txt", "x " * 12), ("a.csv", "1")):
        (tmp_path / name).write_text(content)
        with pytest.raises(DataError):
            read_poses(tmp_path / name)
    np.save(tmp_path / "a.npy", np.zeros((2, 5, 5)))
    with pytest.raises(DataError, match=r"\(2, 5, 5\)"):
        read_poses(tmp_path / "a.npy")
