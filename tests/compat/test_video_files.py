from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval.compat.media import get_video
from tests.cases import for_each


@for_each(
    ("file", "name", "suffix"),
    [
        ("v.mp4", "v", "mp4"),
        ("v.mp4", "v.mp4", "mp4"),
        ("v.MP4", "v", "mp4"),
        ("v.mp4", "v", "MP4"),
        ("v.mp4", "v", ".mp4"),
        ("clipmp4.mp4", "clipmp4", "mp4"),
        ("7.mkv", 7, "mkv"),
        ("a/v.webm", "a/v", "webm"),
    ],
)
def test_a_video_is_found(tmp_path: Path, file: str, name: object, suffix: str) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).touch()
    assert get_video(str(tmp_path), name, suffix) == str(tmp_path / file)


def test_the_ending_as_given_comes_first(tmp_path: Path) -> None:
    for name in ("v.mp4", "v.MP4"):
        (tmp_path / name).touch()
    assert get_video(str(tmp_path), "v", "MP4") == str(tmp_path / "v.MP4")
    assert get_video(str(tmp_path), "v", "Mp4") == str(tmp_path / "v.MP4")


def test_paths_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("v.mp4").touch()
    assert get_video(".", "v") == str(tmp_path / "v.mp4")


def test_an_absent_video_is_named_with_its_places(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"video 'v': .*v\.mp4, .*v\.MP4"):
        get_video(str(tmp_path), "v")
