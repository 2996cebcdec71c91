import json
import sys

import numpy as np
import pytest

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import DataError, MediaError
from lmms_eval.tasks.general_bench.items import UnreadableAnswer
from lmms_eval.tasks.general_bench.measures.geometry import MEASURES
from tests.cases import for_each
from tests.tasks.general_bench.measures.kit3d import CONTEXT, an_item

BY_NAME = {measure.name: measure for measure in MEASURES}
DETECTION = ("map", "map/centre_distance")
BOXES = [{"box": [0, 0, 0, 2, 2, 2, 0], "label": "chair"}, [5, 0, 0, 2, 2, 2, 0, "table"]]
TRACKS = [[{"id": 1, "label": "car", "center": [x, 0, 0]}, {"id": 2, "center": [50 + x, 0, 0]}] for x in range(4)]


def poses(step=1.0, frames=250):
    made = np.tile(np.eye(4), (frames, 1, 1))
    made[:, 2, 3] = step * np.arange(frames)
    return made[:, :3].reshape(frames, 12)


def state(name, prediction, item):
    """As it comes back from the journal."""
    return json.loads(json.dumps(BY_NAME[name].state(prediction, item, CONTEXT), allow_nan=False))


def test_measures_have_different_names_and_say_what_they_were_checked_against():
    assert set(BY_NAME) == {"chamfer_distance", "rte", "amota", *DETECTION}
    assert all((measure.checked and not measure.is_mean) or measure.unanswered for measure in MEASURES)


def test_chamfer_distance_of_files_and_meshes(tmp_path):
    np.save(tmp_path / "r.npy", [[0.0, 0, 0], [1, 0, 0]])
    (tmp_path / "m.obj").write_text("v 0 0 0\nv 9 0 0\nv 0 9 0\nf 1 2 3\n")
    item = an_item(tmp_path, "3D Point Cloud Completion", "r.npy")
    states = [state("chamfer_distance", [[0, 3, 4], [1, 0, 0]], item), state("chamfer_distance", "r.npy", item)]
    assert states == [pytest.approx(5 / 2 + 1 / 2), 0]  # (1, 0, 0) is nearest to all but one
    assert BY_NAME["chamfer_distance"].value(states) == pytest.approx(1.5)
    mesh = an_item(tmp_path, "Point Cloud to Mesh Object Reconstruction", "m.obj", "mesh")
    assert state("chamfer_distance", "m.obj", mesh) == 0
    with pytest.raises(MediaError):
        state("chamfer_distance", "m.obj", an_item(tmp_path, "3D Point Cloud Completion", "none.npy"))


def test_rte_in_percent(tmp_path):
    np.savetxt(tmp_path / "r.txt", poses())
    np.savetxt(tmp_path / "p.txt", poses(1.01))
    item = an_item(tmp_path, "3D Odometry", "r.txt", "poses")
    states = [state("rte", "p.txt", item), state("rte", "r.txt", item)]
    assert BY_NAME["rte"].value(states[:1]) == pytest.approx(1.0, abs=0.01)
    assert BY_NAME["rte"].value(states) == pytest.approx(BY_NAME["rte"].value(states[:1]) / 2)
    with pytest.raises(UnreadableAnswer, match="249 poses, 250 are needed"):
        state("rte", poses(1, 249).tolist(), item)
    with pytest.raises(DataError, match="does not move"):
        state("rte", poses(1, 3).tolist(), an_item(tmp_path, "3D Odometry", poses(0, 3).tolist()))


def test_amota_in_percent(tmp_path):
    pytest.importorskip("scipy")
    item = an_item(tmp_path, "3D Tracking", TRACKS, "tracks")
    measure = BY_NAME["amota"]
    assert measure.value([state("amota", TRACKS, item)]) == 100
    one_class = [[frame[0]] for frame in TRACKS]
    assert measure.value([state("amota", one_class, item)]) == pytest.approx(50)
    missed = json.loads(json.dumps(measure.unanswered(item, CONTEXT)))
    assert measure.value([missed]) == 0
    # half of all objects missed: the recalls up to 0.5, 18 of 40
    assert measure.value([state("amota", TRACKS, item), missed]) == pytest.approx(45)
    with pytest.raises(UnreadableAnswer, match="3 frames, 4 are needed"):
        state("amota", TRACKS[:3], item)
    with pytest.raises(UnreadableAnswer, match="cannot be used"):
        state("amota", "track.json", item)


def test_without_scipy_tracking_is_not_evaluated(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(NotEvaluated, match="pip install"):
        state("amota", TRACKS, an_item(tmp_path, "3D Tracking", TRACKS, "tracks"))


@for_each("name", DETECTION)
def test_detection_in_percent(tmp_path, name):
    item, measure = an_item(tmp_path, "3D Detection", BOXES, "detections3d"), BY_NAME[name]
    assert measure.value([state(name, BOXES, item)]) == pytest.approx(100)
    assert measure.value([state(name, BOXES[:1], item)]) == pytest.approx(50)
    missed = json.loads(json.dumps(measure.unanswered(item, CONTEXT)))
    assert measure.value([missed]) == 0
    both = measure.value([state(name, BOXES, item), missed])
    assert both == pytest.approx(100 * 51 / 101 if name == "map" else 100 * 40 / 90)
    with pytest.raises(UnreadableAnswer, match="cannot be used"):
        state(name, [[1, 2]], item)


@pytest.mark.parametrize("name", ["amota", *DETECTION])
def test_a_damaged_reference_is_not_the_models_fault(tmp_path, name):
    pytest.importorskip("scipy")
    with pytest.raises(DataError) as caught:
        state(name, [], an_item(tmp_path, "3D Detection", "nothing"))
    assert not isinstance(caught.value, UnreadableAnswer)
