"""The folder of media that a run keeps: once each, within limits, whatever ends the process."""

from __future__ import annotations

import hashlib
import io
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from loguru import logger

from lmms_eval.media import keeper as module
from lmms_eval.media.keeper import NAME, KeepLimits, MediaKeeper
from lmms_eval.storage.lines import JournalWriter
from tests.painting import png

WIDE = KeepLimits(10**6, 10**6)


@contextmanager
def logged() -> Iterator[io.StringIO]:
    """A context whose value receives the warnings of the log."""
    text = io.StringIO()
    sink = logger.add(text, format="{message}", level="WARNING")
    try:
        yield text
    finally:
        logger.remove(sink)


def opened(tmp_path: Path, limits: KeepLimits = WIDE, rank: int = 0, is_alone: bool = True) -> MediaKeeper:
    return MediaKeeper(tmp_path / "media", tmp_path / "record", limits, rank, is_alone)


def files(tmp_path: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (tmp_path / "media").iterdir()}


def test_a_medium_is_kept_once_under_its_hash(tmp_path: Path) -> None:
    keeper, data, reads = opened(tmp_path), png(1), []
    first = keeper.keep("a", lambda: reads.append(1) or data)
    assert first.file == f"media/{hashlib.sha256(data).hexdigest()}.png" and first.reason == ""
    assert keeper.keep("a", lambda: reads.append(1) or data) == first and reads == [1]
    before = os.stat(tmp_path / first.file).st_mtime_ns
    assert keeper.keep("another source", lambda: data) == first
    assert os.stat(tmp_path / first.file).st_mtime_ns == before
    assert files(tmp_path) == {first.file.removeprefix("media/"): data}
    stated = keeper.stated()
    assert (stated["files"], stated["bytes"], stated["not_stored"]) == (1, len(data), {})


def test_nothing_is_stated_if_nothing_was_kept(tmp_path: Path) -> None:
    keeper = opened(tmp_path)
    assert keeper.stated() == {}
    keeper.close()
    assert not (tmp_path / "media").exists() and not (tmp_path / "record").exists()


@pytest.mark.parametrize(("data", "suffix"), [(b"../../etc/passwd", "bin"), (b"ID3\x04", "mp3"), (b"", "bin")])
def test_names_are_hashes_whatever_the_bytes_are(tmp_path: Path, data: bytes, suffix: str) -> None:
    name = opened(tmp_path).keep("x", lambda: data).file.removeprefix("media/")
    assert NAME.fullmatch(name) and name.endswith(f".{suffix}")


def test_the_budget_is_announced_once_and_counts_over_starts(tmp_path: Path) -> None:
    one, two, three = png(1), png(2), png(3)
    limits = KeepLimits(len(one) + len(two), 10**6)
    keeper = opened(tmp_path, limits)
    keeper.keep(1, lambda: one)
    keeper.close()
    again = opened(tmp_path, limits)
    with logged() as told:
        kept = [again.keep(number, lambda data=data: data) for number, data in ((1, one), (2, two), (3, three))]
        assert again.keep("another", lambda: b"ID3" + bytes(len(one))).reason == "budget"
    assert [bool(found.file) for found in kept] == [True, True, False] and kept[2].reason == "budget"
    assert told.getvalue().count("the budget for media of this run is used up") == 1
    again.close()
    third = opened(tmp_path, limits)
    with logged() as told:
        third.keep(3, lambda: three)
    assert told.getvalue() == ""
    assert third.stated()["not_stored"] == {"budget": 3} and len(files(tmp_path)) == 2


def test_a_medium_over_the_limit_of_size_leaves_the_budget_alone(tmp_path: Path) -> None:
    keeper = opened(tmp_path, KeepLimits(10**6, 100))
    assert keeper.keep(1, lambda: bytes(101)).reason == "size"
    assert keeper.keep(2, lambda: bytes(100)).file
    assert keeper.stated()["not_stored"] == {"size": 1}


def test_a_start_after_a_kill_writes_nothing_twice_and_loses_nothing(tmp_path: Path) -> None:
    keeper, data = opened(tmp_path), png(1)
    kept = keeper.keep(1, lambda: data)
    listed = tmp_path / "record" / "media-0.jsonl"
    listed.write_bytes(listed.read_bytes()[:-10])  # killed between file and list
    before = os.stat(tmp_path / kept.file).st_mtime_ns
    again = opened(tmp_path)
    assert again.stated() == {}
    assert again.keep(1, lambda: data) == kept and os.stat(tmp_path / kept.file).st_mtime_ns == before
    assert again.stated()["files"] == 1
    (tmp_path / kept.file).write_bytes(data[:5])  # torn by another program
    assert opened(tmp_path).keep(1, lambda: data) == kept and (tmp_path / kept.file).read_bytes() == data


def test_processes_share_one_budget(tmp_path: Path) -> None:
    limits = KeepLimits(350, 10**6)
    first, second = (opened(tmp_path, limits, rank, is_alone=False) for rank in (0, 1))
    kept = [
        (first, second)[number % 2].keep(number, lambda number=number: bytes([number]) * 100) for number in range(6)
    ]
    assert [bool(one.file) for one in kept] == [True, True, True, False, False, False]
    assert second.keep("of the first", lambda: bytes([0]) * 100).file == kept[0].file
    assert first.stated() == second.stated() and first.stated()["files"] == 3


def test_threads_wait_for_a_file_that_another_one_writes(tmp_path: Path) -> None:
    keeper, data, gate = opened(tmp_path), png(1), threading.Barrier(8)

    def keep(number: int) -> bytes:
        gate.wait()
        return (tmp_path / keeper.keep(number, lambda: data).file).read_bytes()

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(keep, range(8))) == {data}
    assert keeper.stated()["files"] == 1


def test_a_folder_that_cannot_be_written_is_announced_once(tmp_path: Path) -> None:
    (tmp_path / "media").write_text("a file")
    keeper = opened(tmp_path)
    with logged() as told:
        reasons = [keeper.keep(number, lambda number=number: bytes([number])).reason for number in range(2)]
    assert reasons == ["disk", "disk"] and told.getvalue().count("media of this run are not stored") == 1
    assert keeper.stated()["not_stored"] == {"disk": 2} and keeper.stated()["bytes"] == 0


def test_lines_that_name_other_places_are_passed_over(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path / "record" / "media-0.jsonl")
    writer.append({"file": "../../secret.png", "bytes": 5})
    writer.append({"file": 7, "bytes": "x"})
    writer.append({"left_out": "later", "bytes": 1})
    writer.close()
    assert opened(tmp_path).stated() == {}


def test_files_of_an_earlier_folder_are_copied(tmp_path: Path) -> None:
    first = opened(tmp_path)
    kept = first.keep(1, lambda: png(1))
    moved = MediaKeeper(tmp_path / "elsewhere" / "media", tmp_path / "record", WIDE)
    moved.take_over([tmp_path / "nowhere", tmp_path / "media"])
    assert (tmp_path / "elsewhere" / kept.file).read_bytes() == png(1)


def test_what_is_known_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_KNOWN", 2)
    keeper = opened(tmp_path)
    kept = [keeper.keep(number, lambda number=number: bytes([number])) for number in (1, 2, 3, 1)]
    assert kept[0] == kept[3] and keeper.stated()["files"] == 3
