"""Trackio in a local database: what it holds afterwards is what the results say."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.config.tracking import TRACKIO
from lmms_eval.evaluation.run import run
from lmms_eval.evaluation.writing import RunReport
from tests.evaluation.kit import NAME, Told, config, fails_on
from tests.trackers.kit import PICTURES, eval_row, numbers_of, place_of, with_pictures
from tests.trackers.stored import StoredRun, trackio_runs

pytest.importorskip("trackio", reason="trackio asks for pillow below 13")


@pytest.fixture(autouse=True)
def _local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))


def tracked(tmp: Path, model: Any = None, **over: Any) -> RunReport:
    return run(config(tmp, model="told", **{"trackio_args": "project=birds,name=first", **over}), model or Told())


def stored(report: RunReport, project: str = "birds") -> list[StoredRun]:
    return trackio_runs(place_of(report, "trackio"), project)


def test_its_run_holds_the_results(tmp_path: Path) -> None:
    report = tracked(tmp_path, Told(fails_on(2)), error_budget=0.5)
    (found,) = stored(report)
    assert found.name == "first"
    numbers = numbers_of(report)
    assert numbers == {name: found.summary[name] for name in numbers}
    assert found.summary[f"{NAME}/alias"] == NAME
    assert found.summary["state"] == "complete"
    live = found.history[0]
    assert (live["live/documents"], live["live/failed"], live[f"live/{NAME}/n"]) == (6, 1, 5)
    (row,) = found.summary["evaluation/eval_results"]["_value"]
    assert list(row.values()) == eval_row(report)
    assert "trackio show --project birds" in "\n".join(report.lines)


def test_samples_show_small_pictures(tmp_path: Path) -> None:
    report = with_pictures(tmp_path, trackio_args="project=birds", trackio_log_samples=True)
    (found,) = stored(report)
    rows = found.summary[f"samples/{PICTURES}"]["_value"]
    assert [row["doc_id"] for row in rows] == ["0", "1", "2"]
    for row in rows:
        (picture,) = row["pictures"]
        (file,) = (tmp_path / "trackio").rglob(Path(picture["file_path"]).name)
        assert file.stat().st_size > 0


def test_an_interrupted_run_goes_on_as_the_same_one(tmp_path: Path) -> None:
    tracked(tmp_path, Told(fails_on(1)))
    (one,) = stored(tracked(tmp_path))
    assert [step["state"] for step in one.history if "state" in step] == ["withheld", "complete"]
    assert [step["step"] for step in one.history] == sorted({step["step"] for step in one.history})
    assert len(stored(tracked(tmp_path))) == 2  # begun anew under the same name


def test_the_keys_are_those_of_the_package() -> None:
    import trackio

    assert set(TRACKIO.keys) <= set(inspect.signature(trackio.init).parameters)
