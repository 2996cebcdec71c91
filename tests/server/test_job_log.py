from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.server.job_log import JobLog, LogWriter


def _write(folder: Path, pieces: list[bytes], part_bytes: int = 100) -> None:
    for piece in pieces:  # each by another keeper
        writer = LogWriter(folder, part_bytes)
        writer.write(piece)
        writer.close()


def _read(log: JobLog, most: int = 37) -> tuple[bytes, int]:
    place, data, gap = 0, b"", 0
    while (piece := log.read(place, most)).data:
        data, place, gap = data + piece.data, piece.next, gap + piece.left_out
    assert place == log.end
    return data, gap


def test_a_small_log_is_whole(tmp_path):
    _write(tmp_path, [b"one\n", b"two\n"])
    log = JobLog(tmp_path)
    assert _read(log) == (b"one\ntwo\n", 0)
    assert [*log.lines()] == ["one\n", "two\n"]
    assert log.last_lines(1) == ["two"]
    assert log.read(4, 100).data == b"two\n"


def test_a_log_that_is_not_there_is_empty(tmp_path):
    log = JobLog(tmp_path / "none")
    assert (log.end, [*log.lines()], log.last_lines(5)) == (0, [], [])


@given(st.lists(st.binary(min_size=1, max_size=400), max_size=12))
def test_beginning_and_end_are_kept_and_places_stay(tmp_path_factory, pieces):
    folder = tmp_path_factory.mktemp("log")
    _write(folder, pieces)
    whole, log = b"".join(pieces), JobLog(folder)
    data, gap = _read(log)
    assert log.end == len(whole) == len(data) + gap
    assert len(data) <= 300
    assert data[:100] == whole[:100]
    assert whole.endswith(data[100:])
    for place in (0, len(whole) // 2, max(0, len(whole) - 50)):
        piece = log.read(place, 50)
        begin = place + piece.left_out
        assert piece.data == whole[begin : piece.next]


def test_what_is_left_out_is_said(tmp_path):
    _write(tmp_path, [f"line {number:3}\n".encode() for number in range(100)])
    text = "".join(JobLog(tmp_path).lines())
    assert text.startswith("line   0\n")
    assert text.endswith("line  99\n")
    assert "bytes of the log are not kept]\n" in text


def test_a_disk_that_takes_nothing_does_not_end_the_job(tmp_path):
    place = tmp_path / "log"
    writer = LogWriter(place)
    place.write_text("a file where the folder should be")
    writer.write(b"lost\n")
    place.unlink()
    writer.write(b"kept\n")
    writer.close()
    assert "".join(JobLog(place).lines()) == "[5 bytes of the log could not be written]\nkept\n"
