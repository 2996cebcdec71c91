import gc
import os
import sys
import time

import pytest

from lmms_eval.processes import Child, ChildError

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
        started.append(Child("child_of_test"))
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
    with pytest.raises(ChildError, match=r"within 0\.2 s"):
        process.receive(0.2)
    assert time.monotonic() - begin < 5


def test_an_end_is_reported_with_its_code(start):
    process = start("raise SystemExit(7)")
    with pytest.raises(ChildError, match="code 7"):
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


def test_an_end_has_a_code_and_silence_has_none(start):
    process = start("raise SystemExit(7)")
    with pytest.raises(ChildError) as ended:
        process.receive(10)
    assert ended.value.code == 7
    assert process.has_ended
    silent = start("import sys\nsys.stdin.read()")
    with pytest.raises(ChildError) as ended:
        silent.receive(0.1)
    assert ended.value.code is None
    assert not silent.has_ended


def test_standard_error_is_shown_discarded_or_kept(tmp_path, monkeypatch, capfd):
    monkeypatch.syspath_prepend(str(tmp_path))
    code = "import sys\nsys.stderr.write('much\\n' * 100_000 + 'loud\\n')\nprint(1, flush=True)\nraise SystemExit(3)"
    (tmp_path / "loud_child_of_test.py").write_text(code)
    for errors, shown, ending in (("shown", "loud\n", ""), ("discarded", "", ""), ("kept", "", ": loud")):
        process = Child("loud_child_of_test", errors=errors)
        assert process.receive(10) == b"1"
        with pytest.raises(ChildError) as ended:
            process.receive(10)
        assert str(ended.value) == f"the process loud_child_of_test ended with code 3{ending}"
        process.close()
        assert capfd.readouterr().err[-5:] == shown


def test_a_line_that_is_not_read_is_not_waited_for(start):
    process = start("import time\nprint('ready', flush=True)\ntime.sleep(600)")
    process.receive(10)
    begin = time.monotonic()
    with pytest.raises(ChildError, match=r"no line read within 0\.2 s"):
        process.send(b"x" * 1_000_000, timeout_s=0.2)
    assert time.monotonic() - begin < 5


def test_one_that_closes_its_pipes_and_stays_is_killed(start):
    process = start("import os, time\nos.close(1)\ntime.sleep(600)")
    with pytest.raises(ChildError, match="ended with code -9"):
        process.receive(10)
    assert process.has_ended


def test_the_first_line_goes_before_the_others(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "child_of_test.py").write_text(ECHO)
    process = Child("child_of_test", first=b"one")
    assert process.ask(b"two", 10) == b"ONE"
    assert process.ask(b"three", 10) == b"TWO"
    process.close()


SERVER = """
import sys, time
from lmms_eval.processes import Parent
parent = Parent()
for line in parent:
    print("noise", flush=True)
    if line == b"sleep\\n":
        time.sleep(600)
    parent.send(line.strip() + str(sys.stdin.read()).encode())
"""


def test_what_a_child_prints_or_reads_is_no_line_of_its_parent(start):
    process = start(SERVER)
    assert process.ask(b"one", 10) == b"one"
    assert process.ask(b"two", 10) == b"two"


def test_a_child_at_work_ends_with_the_input(start):
    process = start(SERVER)
    process.ask(b"one", 10)
    process.send(b"sleep")
    begin = time.monotonic()
    process.close(patience_s=20)
    assert time.monotonic() - begin < 10
    assert process.has_ended


def test_a_users_files_do_not_replace_modules_of_python(tmp_path, monkeypatch):
    for name in ("types", "json", "lmms_eval"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('shadowed')")
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "other"
    place.mkdir()
    (place / "child_elsewhere.py").write_text("import json, types, lmms_eval\n" + ECHO)
    monkeypatch.setattr(sys, "path", ["/somewhere/bin", str(place), *sys.path[1:]])
    process = Child("child_elsewhere")
    process.send(b"one")
    assert process.receive(10) == b"ONE"
    process.close()


def test_a_module_of_the_working_folder_is_found_where_the_parent_finds_it(tmp_path, monkeypatch):
    (tmp_path / "child_here.py").write_text(ECHO)
    monkeypatch.chdir(tmp_path)
    for first in ("", str(tmp_path)):
        monkeypatch.setattr(sys, "path", [first, *sys.path[1:]])
        process = Child("child_here")
        process.send(b"one")
        assert process.receive(10) == b"ONE"
        process.close()


def test_a_child_that_nobody_closed_ends_with_its_last_reference(tmp_path, monkeypatch):
    (tmp_path / "child_left.py").write_text("import time\ntime.sleep(60)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    process = Child("child_left")
    pid = process.pid
    del process
    gc.collect()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_process_may_do_without_packages(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "heavy_package.py").write_text("")
    (tmp_path / "light_worker.py").write_text(
        "from lmms_eval.processes import Parent, do_without\n"
        "do_without('heavy_package')\n"
        "parent = Parent()\n"
        "for line in parent:\n"
        "    try:\n"
        "        import heavy_package\n"
        "    except ImportError as error:\n"
        "        parent.send(type(error).__name__.encode())\n"
    )
    child = Child("light_worker")
    assert child.ask(b"import", 20) == b"ModuleNotFoundError"
    child.close()
