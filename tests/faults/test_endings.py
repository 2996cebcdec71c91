"""Never torn, never stuck: kills at the wrong instant, a vanished folder, damaged records, a full disk everywhere."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.workload import text_task
from lmms_eval.cli.output import report_error
from tests import forks
from tests.faults.bad_input import SAMPLE, end_of, good, here, running, stub_flags, with_function, words_of
from tests.faults.command import lmms_eval, results
from tests.servers.stub import StubServer


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_API_BASE", "OPENAI_BASE_URL", "VERBOSITY", "LMMS_EVAL_PLUGINS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def files_below(out: Path) -> dict[str, bytes]:
    """Every file but what is hidden."""
    found = (path for path in sorted(out.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in found
        if not any(part.startswith(".") for part in path.relative_to(out).parts)
    }


# --- kills


def test_a_kill_leaves_no_empty_results(tmp_path: Path) -> None:
    text_task(tmp_path / "tasks", 16)
    with StubServer(delay=0.2) as server, running(tmp_path, server) as process:
        process.kill()
        process.wait()
    assert files_below(tmp_path / "out") == {}


def test_an_interrupt_leaves_no_samples_file_of_a_task_that_was_not_reached(tmp_path: Path) -> None:
    text_task(tmp_path / "tasks", 16)
    text = (tmp_path / "tasks" / "bench_text.yaml").read_text()
    (tmp_path / "tasks" / "bench_zzz.yaml").write_text(text.replace("task: bench_text", "task: bench_zzz"))
    with StubServer(delay=0.3) as server:
        flags = stub_flags(tmp_path, server, "bench_text,bench_zzz")
        process = subprocess.Popen(
            [sys.executable, "-m", "lmms_eval", *words_of(flags)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        while server.stats()["total"] < 3 and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert end_of(process).code == 143
    names = [name.partition("_samples_")[2] for name in files_below(tmp_path / "out") if "_samples_" in name]
    assert names == ["bench_text.jsonl"]


AT_EXIT = """
import atexit
import time

atexit.register(time.sleep, 60)


def same(doc, results):
    return {"exact_match": float(results[0] == doc["answer"])}
"""


def test_a_kill_between_the_table_and_the_exit(tmp_path: Path) -> None:
    """The run is complete, but nobody knows whether its table was seen: it is shown again, and nothing is asked."""
    text_task(tmp_path / "tasks", 6)
    with_function(("metric_list", "process_results: !function utils.same\nmetric_list"), AT_EXIT)(tmp_path / "tasks")
    with StubServer() as server:
        words = words_of(stub_flags(tmp_path, server, "bench_text"))
        process = subprocess.Popen(
            [sys.executable, "-m", "lmms_eval", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert process.stdout is not None
        shown = ""
        while "written: " not in shown:
            shown += process.stdout.readline()
        time.sleep(0.5)  # all is done but what is registered to be done at the exit
        process.kill()
        shown += process.communicate()[0]
        assert process.returncode == -signal.SIGKILL
        kept = files_below(tmp_path / "out")
        for _ in range(2):  # as long as the command does not come to its end
            process = subprocess.Popen(
                [sys.executable, "-m", "lmms_eval", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                text=True,
            )  # fmt: skip
            assert process.stdout is not None
            again = ""
            while "is complete: its results are shown again" not in again:
                line = process.stdout.readline()
                assert line, again
                again += line
            process.kill()
            process.communicate()
            assert again.startswith(shown.rstrip("\n"))
        assert files_below(tmp_path / "out") == kept
        assert server.stats()["total"] == 6


def test_a_run_that_was_shown_to_the_end_begins_anew(tmp_path: Path) -> None:
    text_task(tmp_path / "tasks", 6)
    with StubServer() as server:
        words = words_of(stub_flags(tmp_path, server, "bench_text"))
        for asked in (6, 12):
            ended = lmms_eval(*words)
            assert ended.code == 0, ended.shown
            assert server.stats()["total"] == asked
            assert "shown again" not in ended.shown


# --- the folder


def test_an_output_folder_that_is_deleted_meanwhile(tmp_path: Path) -> None:
    text_task(tmp_path / "tasks", 40)
    with StubServer(delay=0.1) as server, running(tmp_path, server) as process:
        shutil.rmtree(tmp_path / "out")
        ended = end_of(process)
        assert server.stats()["total"] < 40  # nothing is paid for that nobody will find
    assert ended.code == 1, ended.shown
    assert "Traceback" not in ended.shown
    (line,) = (line for line in ended.err.splitlines() if line.startswith("error: "))
    assert "was deleted or moved while it was written" in line
    assert not (tmp_path / "out").exists()


def test_an_output_folder_that_is_moved_meanwhile(tmp_path: Path) -> None:
    text_task(tmp_path / "tasks", 8)
    with StubServer(delay=0.1) as server, running(tmp_path, server) as process:
        (tmp_path / "out").rename(tmp_path / "elsewhere")
        ended = end_of(process)
    assert ended.code == 1, ended.shown
    assert "was deleted or moved while it was written" in ended.err.splitlines()[-1]
    assert not (tmp_path / "out").exists()


# --- a full disk: one line, whatever it is that does not fit


@pytest.mark.parametrize(("limit", "file"), [(0, "owner.json"), (300, "run.json"), (5000, ".jsonl")])
def test_a_full_disk_is_one_line(limit: int, file: str, tmp_path: Path) -> None:
    text_task(tmp_path / "tasks", 20)
    with StubServer() as server:
        flags = {**stub_flags(tmp_path, server, "bench_text"), "--verbosity": "WARNING"}
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        full = forks.run("-m", "lmms_eval", *words_of(flags), env=environment, file_size=limit)
        assert full.returncode == 1, full.stderr
        (line,) = full.stderr.splitlines()
        assert line.startswith("error: ") and file in line
        assert here(flags).code == 0
        assert server.stats()["total"] <= 20 + 2


@pytest.mark.parametrize("words", [("tasks", "list"), ("version",), ("--tasks", "bench_text")])
def test_standard_output_on_a_full_disk(words: tuple[str, ...], tmp_path: Path) -> None:
    text_task(tmp_path / "tasks", 2)
    flags = words_of(good(tmp_path, verbosity="WARNING"))
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "lmms_eval", *(flags if words[0] == "--tasks" else words)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: cannot write to standard output: No space left on device")
    assert words[0] != "--tasks" or results(tmp_path / "out")["results"]["bench_text"][SAMPLE] is not None


def test_standard_error_on_a_full_disk(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "lmms_eval", "--limt"], stderr=full, check=False)
    assert done.returncode == 2


def test_any_other_write_on_a_full_disk_is_one_line_too(capsys: pytest.CaptureFixture[str]) -> None:
    error = OSError(errno.ENOSPC, "No space left on device", "some/file")
    assert report_error(error, with_traceback=True) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: some/file cannot be written: No space left on device; ")
    assert "make room and start the same command again" in line


def test_a_terminal_that_is_gone(tmp_path: Path) -> None:
    text_task(tmp_path / "tasks", 2)
    master, slave = os.openpty()
    os.close(master)
    try:
        command = [sys.executable, "-m", "lmms_eval", *words_of(good(tmp_path))]
        done = subprocess.run(command, stdout=slave, stderr=slave, check=False)
    finally:
        os.close(slave)
    assert done.returncode == 0
    assert results(tmp_path / "out")["results"]["bench_text"][SAMPLE] is not None


# --- damage


def test_flipped_bits_of_a_run_change_no_number_and_stop_no_start(tmp_path: Path) -> None:
    """Also in ``run.json``, ``owner.json`` and the kept report, which are read at every start."""
    text_task(tmp_path / "tasks", 4)
    flags = good(tmp_path, resume="", log_samples="", model_args="strategy=gold")
    assert here(flags).code == 0
    (folder,) = (path.parent for path in (tmp_path / "out").rglob("run.json"))
    (folder / "owner.json").write_text(json.dumps({"host": os.uname().nodename, "pid": 2**22 + 1, "started": "1"}))
    draw = random.Random(12)
    whole = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".json", ".jsonl")}
    read = {"outline.json", "owner.json", "responses-0.jsonl", "run.json", "scores-0.jsonl", "shown.json"}
    assert whole.keys() == read
    for name, data in whole.items():
        for _ in range(3):
            changed = bytearray(data)
            for _ in range(draw.choice((1, 40))):
                changed[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
            for other, content in whole.items():
                (folder / other).write_bytes(changed if other == name else content)
            old = time.time() - 3600  # an owner file that is torn is waited for, and an owner elsewhere
            os.utime(folder / "owner.json", (old, old))
            ended = here(flags)
            assert ended.code == 0, (name, ended.shown)
            (latest,) = (tmp_path / "out").glob("*_results.json")
            assert json.loads(latest.read_text())["results"]["bench_text"][SAMPLE] == 1.0
            shutil.copytree(folder, tmp_path / "kept", dirs_exist_ok=True)
            for path in (tmp_path / "out").glob("*_*"):
                path.unlink()
