"""Thumbnails are made once, as long as what they were made of stays as it was."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import as_completed
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from PIL import Image

from lmms_eval.viewer import media
from lmms_eval.viewer.media import INDEX, KeptMedia, MediaFolders, MediaStore


@pytest.fixture
def pictures(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{number}.png" for number in range(3)]
    for number, path in enumerate(paths):
        Image.new("RGB", (700, 500), (60 * number, 90, 160)).save(path)
    return paths


@pytest.fixture
def make(tmp_path: Path, pictures: list[Path], monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[int, list[Any]]]:
    """Writes the media of a report; returns how many pictures were decoded for it, and the items."""
    decoded: list[Path] = []
    real = media.load_preview

    def counted(path: Path, max_side: int) -> Any:
        decoded.append(path)
        return real(path, max_side)

    monkeypatch.setattr(media, "load_preview", counted)

    def write(mode: Any = "thumbnails") -> tuple[int, list[Any]]:
        decoded.clear()
        store = MediaStore(tmp_path / "report/media", mode)
        items = [store.add({"type": "image", "path": str(path)}, MediaFolders(())).result() for path in pictures]
        store.close()
        assert store.names >= {address.rpartition("/")[2] for item in items for address in (item["src"],)}
        return len(decoded), items

    return write


def test_unchanged_sources_are_not_decoded_again(make: Any, pictures: list[Path], tmp_path: Path) -> None:
    count, first = make()
    assert count == 3
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "report/media").glob("*.webp")}
    assert make() == (0, first)
    assert make() == (0, first)  # what was found is kept for the next time too
    assert {path: path.stat().st_mtime_ns for path in written} == written
    Image.new("RGB", (300, 200)).save(pictures[1])
    os.utime(pictures[2], ns=(1, 1))
    count, items = make()
    assert count == 2
    assert [item == earlier for item, earlier in zip(items, first, strict=True)] == [True, False, True]
    count, items = make("full")
    assert count == 3
    assert all(item["full"].endswith(".png") for item in items)


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[1]", b'{"a": 1}', b"\xff\xfe\n{"),
        *(b'{"key": "a", "src": 1, "sizes": {}}', b'{"key": "a", "sizes": {}, "x": 1}'),
    ],
)
def test_a_damaged_or_foreign_index_is_passed_over(make: Any, tmp_path: Path, content: bytes) -> None:
    _, first = make()
    (tmp_path / "report/media" / INDEX).write_bytes(content)
    assert make() == (3, first)
    assert make() == (0, first)


def test_entries_count_only_with_their_files(make: Any, tmp_path: Path) -> None:
    _, first = make()
    folder = tmp_path / "report/media"
    (folder / first[0]["src"].rpartition("/")[2]).unlink()
    (folder / first[1]["src"].rpartition("/")[2]).write_bytes(b"cut")
    assert make() == (2, first)
    lines = [json.loads(line) for line in (folder / INDEX).read_text().splitlines()]
    assert len(lines) == 3
    foreign = [json.dumps(line | {"src": "media/../../secret.webp"}) for line in lines]
    (folder / INDEX).write_text("\n".join(foreign))
    assert make() == (3, first)


def test_a_writing_that_is_cut_off_loses_no_file(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as cut_off:
        cut_off.setattr(KeptMedia, "write", lambda kept: False)
        _, first = make()
    index = tmp_path / "report/media" / INDEX
    index.write_bytes(index.read_bytes()[:-9])  # the last line is torn
    assert make() == (1, first)


def test_the_index_names_no_path(make: Any, tmp_path: Path) -> None:
    make()
    assert str(tmp_path) not in (tmp_path / "report/media" / INDEX).read_text()


def test_equal_pictures_that_are_made_at_once_are_all_shown(
    tmp_path: Path, pictures: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures[1].write_bytes(pictures[0].read_bytes())
    other_is_made = Event()
    real = media.write_file

    def slow(path: Path, data: bytes) -> None:
        other_is_made.wait(10)
        real(path, data)

    monkeypatch.setattr(media, "write_file", slow)
    store = MediaStore(tmp_path / "report/media", "thumbnails")
    items = [store.add({"type": "image", "path": str(path)}, MediaFolders(())) for path in pictures[:2]]
    for item in as_completed(items, 20):
        other_is_made.set()
        assert item.result()["src"].startswith("media/")
    store.close()
    assert store.missing == 0
