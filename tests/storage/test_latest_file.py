import threading

import pytest

from lmms_eval.errors import JournalError
from lmms_eval.storage.atomic import LatestFile


def test_the_latest_content_stands_in_the_end_and_what_waited_is_passed_over(tmp_path):
    path, begun, go_on, rendered = tmp_path / "f", threading.Event(), threading.Event(), []

    def slow():
        begun.set()
        go_on.wait(30)
        rendered.append("slow")
        return b"first"

    def content(number):
        def render():
            rendered.append(number)
            return b"%d" % number

        return render

    file = LatestFile(path)
    file.put(slow)
    assert begun.wait(30)
    for number in range(5):
        file.put(content(number))
    go_on.set()
    file.close()
    assert path.read_bytes() == b"4"
    assert rendered == ["slow", 4]


def test_nothing_is_written_without_content(tmp_path):
    LatestFile(tmp_path / "f").close()
    assert list(tmp_path.iterdir()) == []


def test_a_failure_reaches_the_caller(tmp_path):
    (tmp_path / "file").touch()
    file = LatestFile(tmp_path / "file" / "below")
    file.put(lambda: b"x")
    with pytest.raises(JournalError, match="cannot write"):
        file.close()
    with pytest.raises(JournalError, match="cannot write"):
        file.put(lambda: b"y")
