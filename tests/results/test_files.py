"""Runs in a folder, finished and unfinished."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from lmms_eval.compare.readers import read_runs
from lmms_eval.errors import DataError
from lmms_eval.results import load
from lmms_eval.results.files import find_run, find_runs, samples_beside
from lmms_eval.storage.run_folder import RunFolder
from tests.cases import for_each
from tests.engine.fakes import FakeTask
from tests.engine.journaled import values_of
from tests.results.runs import KEY, STAMP, document, write_record, write_run

OLDER, NEWER = "20230101_000000", "20250101_000000"


def record(folder: Path, key: str, stamp: str, state: str = "interrupted") -> Path:
    (document,) = values_of(FakeTask(1, "quiz"), "acc", [1.0])
    return write_record(folder / ".runs" / key, document, key=key, stamp=stamp, state=state)


def found(folder: Path) -> list[str]:
    return [str(run.path.relative_to(folder)) for run in find_runs(folder)]


def test_the_record_of_a_finished_run_is_no_second_one(tmp_path: Path) -> None:
    results = write_run(tmp_path)
    record(tmp_path, KEY, STAMP, "complete")
    assert found(tmp_path) == [results.name]


def test_a_run_begun_later_stands_beside_a_finished_one(tmp_path: Path) -> None:
    results = write_run(tmp_path / "model")
    record(tmp_path / "model", "f" * 16, NEWER)
    assert found(tmp_path) == [f"model/{results.name}", f"model/.runs/{'f' * 16}"]


def test_one_that_was_given_up_before_does_not_unless_it_lives(tmp_path: Path) -> None:
    results = write_run(tmp_path)
    older = record(tmp_path, "e" * 16, OLDER)
    assert found(tmp_path) == [results.name]
    owner = RunFolder(older)
    owner.acquire()
    assert found(tmp_path) == [results.name, f".runs/{'e' * 16}"]
    owner.release()
    assert found(tmp_path) == [results.name]


def test_folders_of_models_are_looked_at_apart(tmp_path: Path) -> None:
    write_run(tmp_path / "finished")
    record(tmp_path / "going", "e" * 16, OLDER)
    assert len(found(tmp_path)) == 2


def test_who_needs_one_run_takes_the_finished_one_and_says_so(tmp_path: Path) -> None:
    results = write_run(tmp_path)
    record(tmp_path, "f" * 16, NEWER, "running")
    chosen = find_run(tmp_path)
    assert chosen is not None
    assert chosen.path == results
    for notes in (load(tmp_path).notes, read_runs([str(tmp_path)])[0].notes):
        (note,) = [note for note in notes if "unfinished" in note]
        assert f".runs/{'f' * 16} (state running, begun {NEWER})" in note


def test_a_run_is_named_by_its_date(tmp_path: Path) -> None:
    results = write_run(tmp_path)
    (tmp_path / f"{NEWER}_results.json").write_text(json.dumps(document(run_key="other")))
    date = results.name.removesuffix("_results.json")
    assert load(tmp_path / date).source == load(results).source == results
    assert read_runs([str(tmp_path / date)])[0].source == str(results)
    with pytest.raises(DataError, match=rf"2 runs: name one of them: {re.escape(str(results))} \(.*quiz\); "):
        load(tmp_path)
    with pytest.raises(DataError, match="no such file or folder"):
        load(tmp_path / date[:4])


def test_several_unfinished_ones_are_named(tmp_path: Path) -> None:
    for key in ("e" * 16, "f" * 16):
        record(tmp_path, key, NEWER)
    with pytest.raises(DataError, match=rf"2 runs: name one of them: .*\.runs/{'e' * 16} .*; .*\.runs/{'f' * 16} "):
        find_run(tmp_path)


@for_each("task", ["/", "../x", ""])
def test_tasks_whose_names_are_no_names_of_files_have_no_samples(tmp_path: Path, task: str) -> None:
    assert samples_beside(write_run(tmp_path), task) is None
