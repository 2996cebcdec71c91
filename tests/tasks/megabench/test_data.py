from __future__ import annotations

import shutil
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.megabench import data
from lmms_eval.tasks.megabench.data import COLUMNS, is_video, parse_row
from tests.cases import for_each
from tests.tasks.megabench.rows_for_tests import document


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    data._media_root.cache_clear()
    folder = tmp_path / "hf"
    monkeypatch.setenv("HF_HOME", str(folder))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    yield folder
    data._media_root.cache_clear()


def write_archive(path: Path, names: tuple[str, ...] = ("data/T/a.txt", "data/U/b.txt")) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, f"content of {name}")
    return path


def test_missing_media_are_explained(home: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        data.media_root(tmp_path / "elsewhere")
    message = str(caught.value)
    for part in (
        "9.15 GB", "5ec01ab69cd25b643c4f5e1396e96441", "TIGER-Lab/MEGA-Bench", "data.zip", "--data_root",
        str(home / "megabench_data" / "data"), str(tmp_path / "elsewhere" / "data"),
    ):  # fmt: skip
        assert part in message


@pytest.mark.parametrize("below", ["", "MEGA-Bench", "TIGER-Lab/MEGA-Bench", "TIGER-Lab__MEGA-Bench"])
def test_data_root_comes_first(below: str, home: Path, tmp_path: Path) -> None:
    (home / "megabench_data" / "data").mkdir(parents=True)
    folder = tmp_path / "root" / below
    (folder / "data").mkdir(parents=True)
    assert data.media_root(tmp_path / "root") == folder
    assert data.media_root() == home / "megabench_data"


def test_a_link_to_an_unpacked_copy_is_used_and_stays(home: Path, tmp_path: Path) -> None:
    (tmp_path / "copy" / "data").mkdir(parents=True)
    home.mkdir()
    (home / "megabench_data").symlink_to(tmp_path / "copy")
    write_archive(home / "hub" / "datasets--TIGER-Lab--MEGA-Bench" / "snapshots" / "abc" / "data.zip")
    assert data.media_root() == home / "megabench_data"
    assert (home / "megabench_data").is_symlink()
    assert list((tmp_path / "copy" / "data").iterdir()) == []


def test_an_archive_in_the_hub_cache_is_unpacked(home: Path) -> None:
    write_archive(home / "hub" / "datasets--TIGER-Lab--MEGA-Bench" / "snapshots" / "abc" / "data.zip")
    root = data.media_root()
    assert root == home / "megabench_data"
    assert (root / "data/T/a.txt").read_text() == "content of data/T/a.txt"
    assert [path.name for path in root.iterdir()] == ["data"]


def test_an_archive_beside_local_rows_is_unpacked_into_the_home(home: Path, tmp_path: Path) -> None:
    write_archive(tmp_path / "root" / "data.zip")
    assert data.media_root(tmp_path / "root") == home / "megabench_data"


@for_each("name", ["../outside.txt", "/abs.txt", "data/../../outside.txt", "data\\..\\x.txt"])
def test_names_that_lead_outside_are_refused(name: str, tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "a.zip", ("data/ok.txt", name))
    with pytest.raises(DataError, match="leads outside"):
        data.unpack(archive, tmp_path / "target")
    assert list((tmp_path / "target").iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "target"]


def test_links_are_refused(tmp_path: Path) -> None:
    entry = zipfile.ZipInfo("data/link")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(entry, "/etc")
    with pytest.raises(DataError, match="link"):
        data.unpack(tmp_path / "a.zip", tmp_path / "target")


def test_damaged_archives_leave_nothing(tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "a.zip")
    whole = archive.read_bytes()
    position = whole.index(b"content of")
    for damaged in (whole[:-40], whole[:position] + b"XXXXXXX" + whole[position + 7 :], b"no archive"):
        archive.write_bytes(damaged)
        with pytest.raises(DataError, match="cannot be unpacked"):
            data.unpack(archive, tmp_path / "target")
        assert list((tmp_path / "target").iterdir()) == []


def test_another_archive_is_refused(tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "a.zip", ("pictures/a.txt",))
    with pytest.raises(DataError, match="no top folder data/"):
        data.unpack(archive, tmp_path / "target")


def test_a_full_disk_is_seen_before_unpacking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = write_archive(tmp_path / "a.zip")
    usage = type("Usage", (), {"free": 3})
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(DataError, match="GB free"):
        data.unpack(archive, tmp_path / "target")


def test_a_faster_process_wins(tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "a.zip")
    (tmp_path / "target" / "data").mkdir(parents=True)
    (tmp_path / "target" / "data" / "theirs.txt").write_text("x")
    assert data.unpack(archive, tmp_path / "target") == tmp_path / "target"
    assert [path.name for path in (tmp_path / "target" / "data").iterdir()] == ["theirs.txt"]


def test_rows_of_a_local_copy(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    docs = [document(id=number) for number in range(1, 4)]
    pq.write_table(pa.Table.from_pylist(docs), tmp_path / "open" / "test-00000-of-00001.parquet")
    rows = data.load_rows("open", tmp_path)
    assert rows == docs and tuple(rows[0]) == COLUMNS
    with pytest.raises(DataError, match="core"):
        data.load_rows("core", tmp_path)
    with pytest.raises(DataError, match="use one of core, open"):
        data.load_rows("closed", tmp_path)


def test_columns_are_read() -> None:
    row = parse_row(document(global_media=["./data/T/a.png"], answer={"a": "1", "b": {"c": "d"}}))
    assert row.answer == {"a": "1", "b": {"c": "d"}}
    assert row.answer_text == "{'a': '1', 'b': {'c': 'd'}}"
    assert row.media == ("./data/T/a.png", "./data/T/plain.png", "./data/T/plain.png")
    assert row.segments[0].text == "Describe."
    assert tuple(document()) == COLUMNS


@for_each(
    ("media", "kind"),
    [
        ([], "image"), (["./data/a.png"], "image"), (["./data/a.mp4", "./data/b.mp4"], "video"),
        (["./data/a.png", "./data/b.mp4"], "mixed"),
    ],
)  # fmt: skip
def test_kind(media: list[str], kind: str) -> None:
    assert parse_row(document(example_media=[], query_media=media)).kind == kind


def test_videos_are_known_by_their_name() -> None:
    assert is_video("./data/x.MP4") and is_video("a.webm") and is_video("a.mov")
    assert not is_video("a.png") and not is_video("a") and not is_video("mp4")


@for_each(
    "changes",
    [
        {"query_media": "not a literal"}, {"query_media": "{'a': 1}"}, {"query_media": "[1]"},
        {"query_media": "__import__('os').getcwd()"}, {"answer": "['a']"}, {"answer": "open('/etc/passwd')"},
        {"query_media": ["/etc/passwd.png"]}, {"query_media": ["./data/../../secret.png"]},
        {"global_media": ["..\\secret.png"]},
    ],
)  # fmt: skip
def test_damaged_rows_are_refused_by_name(changes: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=f"'7' of task 'some_task'.*{next(iter(changes))}"):
        parse_row(document(**changes))


def test_a_missing_column_is_named() -> None:
    doc = document()
    del doc["query_media"]
    with pytest.raises(DataError, match="query_media"):
        parse_row(doc)


def test_values_that_are_read_already_are_taken_as_they_are() -> None:
    doc: dict[str, Any] = {**document(), "query_media": ["./data/a.png"], "answer": {"answer": "x"}}
    row = parse_row(doc)
    assert row.query.media == ("./data/a.png",) and row.answer == {"answer": "x"}
