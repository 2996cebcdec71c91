from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.engine.team import Place, Team
from lmms_eval.errors import JournalError, RunLockedError, UsageError
from lmms_eval.evaluation.record import RunRecord, open_record
from lmms_eval.storage.lines import sealed
from tests.cases import for_each
from tests.engine.test_team import MemoryStore
from tests.evaluation.kit import config, inputs_of, run_folders


def opened(tmp: Path, **over: Any) -> RunRecord:
    chosen = config(tmp, **over)
    return open_record(chosen, inputs_of(chosen))


def finished(tmp: Path, state: str, report: bytes = b"", **over: Any) -> RunRecord:
    """A run that came to this state and left one answer; its command was killed before its end."""
    record = opened(tmp, **over)
    (record.folder.path / "responses-0.jsonl").write_bytes(sealed(b'{"id":"t/0/0/0/0","text":"x"}'))
    record.finish(state, "command", report)  # type: ignore[arg-type]
    killed(record)
    return record


def killed(record: RunRecord) -> None:
    """What a kill leaves of its owner."""
    record.folder.release()
    dead = {"host": socket.gethostname(), "pid": os.getpid(), "started": "1"}
    record.folder.owner_file.write_text(json.dumps(dead))


def ended(tmp: Path, state: str, **over: Any) -> RunRecord:
    """A run that ended in this state and left one answer."""
    record = finished(tmp, state, **over)
    record.folder.owner_file.unlink()
    return record


def answers(record: RunRecord) -> bool:
    return (record.folder.path / "responses-0.jsonl").exists()


def test_a_new_run_reserves_its_names(tmp_path: Path) -> None:
    record = opened(tmp_path, model_args="strategy=gold")
    assert record.folder.path == tmp_path / "out" / ".runs" / record.key
    assert record.files is not None and not record.files.results.exists() and record.files.reservation.exists()
    state = json.loads((record.folder.path / "run.json").read_text())
    assert (state["key"], state["state"], state["stamp"]) == (record.key, "running", record.files.stamp)
    assert state["arguments"]["model"] == "baseline"
    record.folder.release()


def test_an_error_is_recorded_with_its_traceback(tmp_path: Path) -> None:
    record = opened(tmp_path)
    try:
        raise ArithmeticError("overflow")
    except ArithmeticError as error:
        record.fail(error, "lmms-eval again")
    record.folder.release()
    state = json.loads((record.folder.path / "run.json").read_text())
    assert (state["state"], state["error"], state["command"]) == (
        "failed", "ArithmeticError: overflow", "lmms-eval again",
    )  # fmt: skip
    trace = record.folder.path / "traceback.txt"
    assert 'raise ArithmeticError("overflow")' in trace.read_text()
    again = opened(tmp_path)
    assert not trace.exists()
    shutil.rmtree(again.folder.path)
    again.fail(ArithmeticError("overflow"), "")
    assert not again.folder.path.exists()  # the user has deleted it


@for_each("state", ["interrupted", "withheld", "running", "failed"])
def test_what_is_not_complete_goes_on_under_its_stamp(tmp_path: Path, state: str) -> None:
    first = ended(tmp_path, state)
    again = opened(tmp_path)
    assert answers(again)
    assert (again.files, again.date) == (first.files, first.date)
    again.folder.release()


def test_a_completed_run_begins_anew_under_a_new_stamp(tmp_path: Path) -> None:
    first = ended(tmp_path, "complete")
    again = opened(tmp_path)
    assert not answers(again)
    assert again.files is not None and first.files is not None and again.files.stamp != first.files.stamp
    again.folder.release()


def test_a_completed_run_whose_command_was_killed_is_shown_again(tmp_path: Path) -> None:
    first = finished(tmp_path, "complete", b'{"table":"t"}')
    for _ in range(2):
        again = opened(tmp_path)
        assert again.report == {"table": "t"}
        assert (again.files, again.date) == (first.files, first.date) and answers(again)
        killed(again)
    again = opened(tmp_path)
    again.end()
    anew = opened(tmp_path)
    assert anew.report is None and not answers(anew)
    anew.folder.release()


@for_each("how", ["damaged", "missing", "other options"])
def test_where_it_cannot_be_shown_it_goes_on(tmp_path: Path, how: str) -> None:
    first = finished(tmp_path, "complete", b'{"table":"t"}')
    report = first.folder.path / "shown.json"
    if how == "damaged":
        report.write_bytes(report.read_bytes().replace(b"t", b"u"))
    elif how == "missing":
        report.unlink()
    again = opened(tmp_path, log_samples=how == "other options")
    assert again.report is None and answers(again) and again.files == first.files
    again.folder.release()


def test_of_one_process_a_completed_run_begins_anew_in_any_case(tmp_path: Path) -> None:
    record = opened(tmp_path)
    record.finish("complete", "command", b'{"table":"t"}')
    record.hold()
    again = opened(tmp_path)  # another run of the batch
    assert again.report is None and again.files != record.files
    again.folder.release()


def test_a_damaged_record_goes_on_from_its_journals(tmp_path: Path) -> None:
    first = finished(tmp_path, "interrupted")
    first.folder.state_file.write_bytes(first.folder.state_file.read_bytes().replace(b"key", b"kez"))
    again = opened(tmp_path)
    assert answers(again) and again.key == first.key
    assert again.folder.read()["state"] == "running"
    again.folder.release()
    first.folder.state_file.write_bytes(b"{}")
    moved = shutil.move(first.folder.path, tmp_path / "moved")
    with pytest.raises(UsageError, match=r"run\.json does not fit its checksum: .*leave --resume out"):
        opened(tmp_path, resume=str(moved))


def test_a_folder_that_is_gone_at_the_end_is_an_error(tmp_path: Path) -> None:
    record = opened(tmp_path)
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(JournalError, match="was deleted or moved while the run wrote to it"):
        record.finish("complete")
    record.end()
    assert not (tmp_path / "out").exists()


def test_a_completed_run_goes_on_with_resume(tmp_path: Path) -> None:
    first = ended(tmp_path, "complete")
    again = opened(tmp_path, resume=True)
    assert answers(again) and again.files == first.files
    again.folder.release()


def test_the_folder_to_resume_can_be_named(tmp_path: Path) -> None:
    first = ended(tmp_path, "complete")
    moved = tmp_path / "moved"
    shutil.move(first.folder.path, moved)
    again = opened(tmp_path, resume=str(moved))
    assert again.folder.path == moved and answers(again)
    again.folder.release()


def test_a_run_of_another_configuration_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    first = ended(tmp_path, "interrupted")
    before = (first.folder.path / "run.json").read_bytes()
    with pytest.raises(UsageError, match=r"holds a run of another configuration .*leave --resume out"):
        opened(tmp_path, resume=str(first.folder.path), limit=2)
    assert (first.folder.path / "run.json").read_bytes() == before
    assert not first.folder.owner_file.exists()  # given free again
    opened(tmp_path).folder.release()


def test_a_folder_without_a_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"run\.json is missing"):
        opened(tmp_path, resume=str(tmp_path / "empty"))


def test_a_second_owner_is_refused(tmp_path: Path) -> None:
    first = opened(tmp_path)
    with pytest.raises(RunLockedError, match="in use by process"):
        opened(tmp_path)
    first.folder.release()
    assert len(run_folders(tmp_path)) == 1


def test_without_an_output_path_the_record_is_in_the_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    record = opened(tmp_path, output_path=None)
    assert record.is_kept and record.files is None
    assert record.folder.path == tmp_path / "state" / "lmms_eval" / "runs" / record.key
    record.folder.release()


def test_a_stamp_survives_a_continuation_without_an_output_path(tmp_path: Path) -> None:
    first = ended(tmp_path, "interrupted")
    opened(tmp_path, resume=str(first.folder.path), output_path=None).folder.release()
    again = opened(tmp_path)
    assert again.files == first.files
    again.folder.release()


@for_each(("attempt", "goes_on"), [(0, False), (1, True)])
def test_what_an_earlier_attempt_of_the_same_launch_completed_is_not_asked_again(
    tmp_path: Path, attempt: int, goes_on: bool
) -> None:
    first = ended(tmp_path, "complete")
    given = config(tmp_path)
    team = Team(Place(0, 2, 0, attempt), MemoryStore())
    again = open_record(given, inputs_of(given), team)
    assert answers(again) is goes_on
    assert (again.date == first.date) is goes_on
    again.folder.release()


def test_a_restart_of_another_launch_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended(tmp_path, "complete")
    monkeypatch.setenv("MASTER_PORT", "1")
    given = config(tmp_path)
    again = open_record(given, inputs_of(given), Team(Place(0, 2, 0, 1), MemoryStore()))
    assert not answers(again)
    again.folder.release()
