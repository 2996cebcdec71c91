"""Runs that version 1.0.0 wrote are read unchanged: five output folders in ``runs_of_1_0_0.tar.xz``.

``complete``, ``until`` (stopped early) and ``controls`` are of the model ``baseline``; ``judged`` and ``interrupted``
(killed) asked a server. The archive also holds the tables that the runs printed.
"""

from __future__ import annotations

import json
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.cli.main import main
from lmms_eval.compare.readers import read_runs
from lmms_eval.results import load
from lmms_eval.storage.lines import records_in, sealed
from lmms_eval.viewer.runs import read_report_runs

ARCHIVE = Path(__file__).with_name("runs_of_1_0_0.tar.xz")
WRITTEN = {
    "complete": {"megabench_demo": {"scored": 5}},
    "until": {"megabench_demo": {"scored": 30}},
    "judged": {"mmie_demo": {"scored": 2, "unscored": 1}},
    "controls": {
        f"milebench_demo_{name}{control}": {"scored": 3}
        for name in ("actionsequence", "objectexistence")
        for control in ("", "@no-media")
    },
}
"""Number of documents by run, task and status."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs_of_1_0_0")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


def statuses(folder: Path) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for sample in load(folder).samples():
        found.setdefault(sample.task, Counter())[sample.status] += 1
    return found


def record_of(folder: Path) -> Path:
    (path,) = (path.parent for path in folder.glob("**/run.json"))
    return path


def results_of(folder: Path) -> dict[str, Any]:
    (path,) = folder.glob("**/*_results.json")
    return json.loads(path.read_text())


@pytest.mark.parametrize("name", WRITTEN)
def test_counts(runs: Path, name: str) -> None:
    assert statuses(runs / name) == statuses(record_of(runs / name)) == WRITTEN[name]


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("read", ["output", "journals"])
def test_scores(runs: Path, name: str, read: str) -> None:
    """The means over the samples that ``compare`` and ``report`` read are those of the results file."""
    path = runs / name if read == "output" else record_of(runs / name)
    (compared,), (reported,) = read_runs([str(path)]), read_report_runs([str(path)])
    stated = results_of(runs / name)["results"]
    checked = 0
    for task, rows in compared.tasks.items():
        assert rows.columns.keys() == reported.rows.tasks[task].columns.keys()
        for key, column in rows.columns.items():
            number = stated[task].get(key)
            if key.split(",")[0] in ("accuracy", "accuracy_fixed", "mmie_judge"):
                scores = [score for score in column.scores.tolist() if score == score]
                assert sum(scores) / len(scores) == pytest.approx(number)
                checked += 1
    assert checked or name in ("complete", "until")


def test_a_killed_run_is_read_from_its_journals(runs: Path) -> None:
    found = statuses(runs / "interrupted")
    assert found.keys() == {"megabench_demo"} and found["megabench_demo"]["scored"] == 43
    assert load(runs / "interrupted").state == "interrupted"


@pytest.mark.parametrize("name", [*WRITTEN, "interrupted"])
def test_commands(runs: Path, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "exported.jsonl"
    assert main(["show", str(runs / name)]) == 0
    assert main(["export", str(runs / name), "--to", "jsonl", "--out", str(out)]) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == sum(sum(counts.values()) for counts in statuses(runs / name).values())
    assert "Traceback" not in capsys.readouterr().err


def test_unknown_fields_are_passed_over(runs: Path, tmp_path: Path) -> None:
    """A later version may add fields to every record; this one reads the rest."""
    record = record_of(runs / "complete")
    for path in record.iterdir():
        if path.suffix == ".jsonl":
            lines = [{**line, "of_a_later_version": [1]} for line in records_in(path.read_bytes(), path)]
            (tmp_path / path.name).write_bytes(b"".join(sealed(json.dumps(line).encode()) for line in lines))
        else:
            (tmp_path / path.name).write_bytes(path.read_bytes())
    assert statuses(tmp_path) == WRITTEN["complete"]
