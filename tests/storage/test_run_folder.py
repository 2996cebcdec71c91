from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lmms_eval.errors import RunLockedError, UsageError
from lmms_eval.storage import run_folder
from lmms_eval.storage.run_folder import DamagedRecord, Owner, RunFolder, check_output_path, this_process
from tests.cases import for_each


def test_a_second_live_owner_is_refused_and_the_message_names_it(tmp_path: Path) -> None:
    first = RunFolder(tmp_path / "run")
    first.acquire()
    with pytest.raises(RunLockedError, match=f"in use by process {os.getpid()} on {socket.gethostname()}"):
        RunFolder(tmp_path / "run").acquire()
    first.release()
    second = RunFolder(tmp_path / "run")
    second.acquire()
    second.release()


def test_a_dead_owner_is_taken_over_at_once(tmp_path: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path; from lmms_eval.storage.run_folder import RunFolder; "
        "RunFolder(Path(sys.argv[1])).acquire(); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "run")], check=False)
    assert (tmp_path / "run" / "owner.json").exists()
    folder = RunFolder(tmp_path / "run")
    folder.acquire()
    assert json.loads(folder.owner_file.read_text())["pid"] == os.getpid()
    folder.release()


def test_a_reused_process_id_is_not_the_owner(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.owner_file.write_text(json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "started": "1"}))
    folder.acquire()
    assert json.loads(folder.owner_file.read_text())["started"] not in ("1", "")
    folder.release()


@for_each(("age", "alive"), [(0, True), (600, False)])
def test_an_owner_on_another_host_lives_by_its_heartbeat(tmp_path: Path, age: float, alive: bool) -> None:
    folder = RunFolder(tmp_path)
    folder.owner_file.write_text(json.dumps({"host": "elsewhere", "pid": 1, "started": "1"}))
    os.utime(folder.owner_file, (time.time() - age, time.time() - age))
    if alive:
        with pytest.raises(RunLockedError, match="elsewhere"):
            folder.acquire()
    else:
        folder.acquire()
        folder.release()


def test_a_torn_owner_file_does_not_lock_for_ever(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.owner_file.write_text('{"host": "')
    folder.acquire()
    assert json.loads(folder.owner_file.read_text())["started"] not in ("1", "")
    folder.release()


def test_state_is_read_back_and_cleared(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.acquire()
    assert folder.read() == {}
    folder.write({"state": "running"})
    (folder.path / "responses-0.jsonl").write_text("{}\n")
    assert folder.read() == {"state": "running"}
    folder.clear()
    assert [entry.name for entry in folder.path.iterdir()] == ["owner.json"]
    folder.release()


@for_each("damage", [b"{", b"", b"{}", b'{"state":"complete"}', b"\xff"])
def test_a_damaged_state_is_told_from_none(tmp_path: Path, damage: bytes) -> None:
    folder = RunFolder(tmp_path)
    folder.write({"state": "running"})
    assert json.loads(folder.state_file.read_bytes())["state"] == "running"
    folder.state_file.write_bytes(damage)
    with pytest.raises(DamagedRecord, match=r"run\.json does not fit its checksum"):
        folder.read()


def test_an_output_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "sub" / "deep"):
        with pytest.raises(UsageError, match="is a file, not a folder"):
            check_output_path(path)
    check_output_path(tmp_path / "new" / "deep")


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes into read-only folders")
def test_a_read_only_output_folder_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match="no permission"):
        check_output_path(tmp_path / "out")


def test_a_file_that_is_just_being_written_is_no_dead_owner(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.owner_file.touch()

    def finish() -> None:
        time.sleep(0.3)
        body = {"host": socket.gethostname(), "pid": me.pid, "started": me.started}
        folder.owner_file.write_text(json.dumps(body))

    me = this_process()
    writer = threading.Thread(target=finish)
    writer.start()
    with pytest.raises(RunLockedError, match=f"process {os.getpid()}"):
        folder.acquire()
    writer.join()


def test_of_two_that_find_a_dead_owner_one_becomes_the_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = {"host": socket.gethostname(), "pid": os.getpid(), "started": "1"}
    (tmp_path / "owner.json").write_text(json.dumps(dead))
    judge, judging, taken = run_folder._is_alive, threading.Barrier(2), threading.Event()

    def slowly(owner: Owner, age: float) -> bool:
        verdict = judge(owner, age)
        with contextlib.suppress(threading.BrokenBarrierError):
            if judging.wait(0.3):  # both have judged the same dead owner, if they may: one is slower to remove it
                taken.wait(1)
        return verdict

    monkeypatch.setattr(run_folder, "_is_alive", slowly)
    ends: list[str] = []
    folders = [RunFolder(tmp_path), RunFolder(tmp_path)]

    def acquire(folder: RunFolder) -> None:
        try:
            folder.acquire()
            taken.set()
            ends.append("owner")
        except RunLockedError:
            ends.append("refused")

    threads = [threading.Thread(target=acquire, args=(folder,)) for folder in folders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ends) == ["owner", "refused"]
    for folder in folders:
        folder.release()


def test_an_owner_that_was_replaced_does_not_remove_its_successor(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.acquire()
    other = json.dumps({"host": "elsewhere", "pid": 1, "started": "1"})
    folder.owner_file.write_text(other)
    folder.release()
    assert folder.owner_file.read_text() == other


@for_each("content", ['{"host": "elsewhere", "pid": 1, "started": "1"}', '{"host": "'])
def test_an_owner_file_with_a_time_in_the_future_does_not_lock_for_ever(tmp_path: Path, content: str) -> None:
    folder = RunFolder(tmp_path)
    folder.owner_file.write_text(content)
    later = time.time() + 86_400
    os.utime(folder.owner_file, (later, later))
    folder.acquire()
    assert json.loads(folder.owner_file.read_text())["pid"] == os.getpid()
    folder.release()


@for_each("pid", ['"self"', "-1", "0", "null", "99999999999999999999", "[1]"])
def test_an_owner_file_that_is_damaged_does_not_lock_for_ever(tmp_path: Path, pid: str) -> None:
    folder = RunFolder(tmp_path)
    folder.owner_file.write_text(f'{{"host": {json.dumps(socket.gethostname())}, "pid": {pid}, "started": "1"}}')
    os.utime(folder.owner_file, (time.time() - 60, time.time() - 60))
    folder.acquire()
    assert json.loads(folder.owner_file.read_text())["pid"] == os.getpid()
    folder.release()


def test_an_owner_file_that_the_disk_does_not_take_leaves_nothing(tmp_path: Path) -> None:
    script = (
        "import resource, sys; from pathlib import Path; from lmms_eval.storage.run_folder import RunFolder\n"
        "from lmms_eval.errors import JournalError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "try:\n    RunFolder(Path(sys.argv[1])).acquire()\nexcept JournalError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    assert "owner.json: File too large; make room and start again" in done.stdout
    assert not (tmp_path / "owner.json").exists()
