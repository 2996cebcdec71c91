import os
import sys
import time

import pytest

from lmms_eval.utils.line_process import LineProcess, ProcessEnded

ECHO = """
import sys
for line in sys.stdin.buffer:
    sys.stdout.buffer.write(line.upper())
    sys.stdout.buffer.flush()
"""


@pytest.fixture
def start(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    started = []

    def make(code):
        (tmp_path / "child_of_test.py").write_text(code)
        started.append(LineProcess("child_of_test"))
        return started[-1]

    yield make
    for process in started:
        process.kill()
        process.close()


def test_lines_go_out_and_come_back(start):
    process = start(ECHO)
    for word in (b"one", b"two", b"x" * 200_000):
        process.send(word)
        assert process.receive(10) == word.upper()


def test_several_lines_of_one_write_come_one_by_one(start):
    process = start("import sys\nsys.stdout.write('a\\nb\\nc\\n')\nsys.stdout.flush()\nsys.stdin.read()")
    assert [process.receive(10) for _ in range(3)] == [b"a", b"b", b"c"]


def test_silence_is_not_waited_for(start):
    process = start("import sys\nsys.stdin.read()")
    begin = time.monotonic()
    with pytest.raises(ProcessEnded, match=r"within 0\.2 s"):
        process.receive(0.2)
    assert time.monotonic() - begin < 5


def test_an_end_is_told_with_its_code(start):
    process = start("raise SystemExit(7)")
    with pytest.raises(ProcessEnded, match="code 7"):
        process.receive(10)


def test_it_ends_with_its_input(start):
    process = start(ECHO)
    process.send(b"ready")
    process.receive(10)
    process.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_one_that_does_not_end_is_killed(start):
    process = start("import time\nprint('ready', flush=True)\ntime.sleep(600)")
    process.receive(10)
    process.close(patience_s=0.1)
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_the_code_of_an_end_is_told_and_silence_has_none(start):
    process = start("raise SystemExit(7)")
    with pytest.raises(ProcessEnded) as ended:
        process.receive(10)
    assert ended.value.code == 7
    assert process.has_ended
    silent = start("import sys\nsys.stdin.read()")
    with pytest.raises(ProcessEnded) as ended:
        silent.receive(0.1)
    assert ended.value.code is None
    assert not silent.has_ended


def test_a_quiet_one_says_nothing_on_standard_error(tmp_path, monkeypatch, capfd):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "loud_child_of_test.py").write_text("import sys\nsys.stderr.write('loud')\nprint(1)")
    for quiet, heard in ((False, "loud"), (True, "")):
        process = LineProcess("loud_child_of_test", quiet=quiet)
        assert process.receive(10) == b"1"
        process.close()
        assert capfd.readouterr().err == heard


def test_a_users_files_do_not_stand_for_modules_of_python(tmp_path, monkeypatch):
    for name in ("types", "json", "lmms_eval"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('shadowed')")
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "beside"
    place.mkdir()
    (place / "child_beside.py").write_text("import json, types, lmms_eval\n" + ECHO)
    monkeypatch.setattr(sys, "path", ["/somewhere/bin", str(place), *sys.path[1:]])
    process = LineProcess("child_beside")
    process.send(b"one")
    assert process.receive(10) == b"ONE"
    process.close()


def test_a_module_of_the_working_folder_is_found_where_the_parent_finds_it(tmp_path, monkeypatch):
    (tmp_path / "child_here.py").write_text(ECHO)
    monkeypatch.chdir(tmp_path)
    for first in ("", str(tmp_path)):
        monkeypatch.setattr(sys, "path", [first, *sys.path[1:]])
        process = LineProcess("child_here")
        process.send(b"one")
        assert process.receive(10) == b"ONE"
        process.close()
