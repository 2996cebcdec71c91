"""Journals are followed while they grow: each line once, nothing of a line that is not whole."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from lmms_eval.storage.lines import JournalReplaced, JournalTails, JournalWriter, LineReader
from tests.cases import for_each


def numbers(tails: JournalTails) -> list[int]:
    return [record["number"] for _, record in tails.news()]


def test_each_look_reads_what_has_come_since(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tails = JournalTails(tmp_path, "scores-*.jsonl")
    assert numbers(tails) == []
    writer = JournalWriter(tmp_path / "scores-0.jsonl")
    for number in range(3):
        writer.append({"number": number})
    assert numbers(tails) == [0, 1, 2]
    other = JournalWriter(tmp_path / "scores-1.jsonl")
    offset = writer.append({"number": 3})
    other.append({"number": 4})
    found = list(tails.news())
    assert [(place.file, record["number"]) for place, record in found] == [(0, 3), (1, 4)]
    assert found[0][0].offset == offset
    with closing(LineReader(tails.files[0])) as reader:
        assert reader.at(offset) == {"number": 3}
    opened: list[object] = []
    monkeypatch.setattr("lmms_eval.results.journals.open", lambda *given: opened.append(given), raising=False)
    assert numbers(tails) == []
    assert opened == []


def test_the_file_that_was_written_last_is_known(tmp_path: Path) -> None:
    for rank, time in enumerate((100, 300, 200)):
        JournalWriter(tmp_path / f"scores-{rank}.jsonl").append({"number": rank})
        os.utime(tmp_path / f"scores-{rank}.jsonl", (time, time))
    tails = JournalTails(tmp_path, "scores-*.jsonl")
    assert numbers(tails) == [0, 1, 2]
    assert tails.newest == 1


def test_a_line_counts_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "scores-0.jsonl"
    writer = JournalWriter(path)
    writer.append({"number": 0})
    writer.append({"number": 1})
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    tails = JournalTails(tmp_path, "scores-*.jsonl")
    assert numbers(tails) == [0]
    assert (tails.torn, tails.damaged) == (1, 0)
    with open(path, "ab") as file:
        file.write(whole[-9:])
    assert numbers(tails) == [1]
    assert (tails.torn, tails.damaged) == (0, 0)


def test_a_torn_line_that_was_gone_on_from_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "scores-0.jsonl"
    JournalWriter(path).append({"number": 0})
    with open(path, "ab") as file:
        file.write(b'{"number":')
    tails = JournalTails(tmp_path, "scores-*.jsonl")
    assert numbers(tails) == [0]
    JournalWriter(path).append({"number": 2})
    assert numbers(tails) == [2]
    assert (tails.torn, tails.damaged) == (0, 1)


@for_each("becomes", ["gone", "shorter", "another"])
def test_a_journal_that_was_begun_anew_is_told(tmp_path: Path, becomes: str) -> None:
    path = tmp_path / "scores-0.jsonl"
    writer = JournalWriter(path)
    for number in range(3):
        writer.append({"number": number})
    tails = JournalTails(tmp_path, "scores-*.jsonl")
    assert numbers(tails) == [0, 1, 2]
    if becomes == "shorter":
        with open(path, "r+b") as file:
            file.truncate(5)
    elif becomes == "another":
        path.rename(tmp_path / "kept")  # so that its place on the disk is not taken again
        for number in range(9):
            JournalWriter(path).append({"number": number})
    else:
        path.unlink()
    with pytest.raises(JournalReplaced):
        numbers(tails)
