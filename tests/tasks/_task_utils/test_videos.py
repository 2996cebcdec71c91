"""Files of a benchmark's media folder: where they are looked for, in which order."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval.errors import MediaError
from lmms_eval.tasks._task_utils.videos import MediaFolder

CLIPS = MediaFolder("clips/v1", "owner/Clips", ("clips_test", "clips"))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "clips" / "v1"


def made(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return str(path)


@pytest.mark.parametrize(
    "place",
    ["owner/Clips/media", "owner/Clips", "owner__Clips", "Clips", "media", "clips_test/media", "clips/media",
     "clips/v1", "."],
)  # fmt: skip
def test_a_folder_of_data_root_stands_for_the_media_folder(place: str, home: Path, tmp_path: Path) -> None:
    made(home / "a.mp4")
    file = made(tmp_path / "data" / place / "a.mp4")
    assert CLIPS.find("a.mp4", settings={"data_root": str(tmp_path / "data")}) == file


@pytest.mark.parametrize("place", ["clips/v1", "."])
def test_media_root_comes_after_data_root_and_before_hf_home(place: str, home: Path, tmp_path: Path) -> None:
    settings = {"data_root": str(tmp_path / "data"), "media_root": str(tmp_path / "more")}
    for folder in (tmp_path / "data", tmp_path / "more" / place, home):
        made(folder / "a.mp4")
    for folder in (tmp_path / "data", tmp_path / "more" / place, home):
        assert CLIPS.find("a.mp4", settings=settings) == str(folder / "a.mp4")
        (folder / "a.mp4").unlink()


def test_other_names_are_tried_in_order(home: Path) -> None:
    file = made(home / "mp4s" / "a.mkv")
    assert CLIPS.find("mp4s/a.mp4", "mp4s/a.MP4", "mp4s/a.mkv") == file
    file = made(home / "mp4s" / "a.MP4")
    assert CLIPS.find("mp4s/a.mp4", "mp4s/a.MP4", "mp4s/a.mkv") == file


def test_folders_that_are_made_later_are_found(home: Path, tmp_path: Path) -> None:
    settings = {"data_root": str(tmp_path / "data")}
    assert CLIPS.look_up("a.mp4", settings=settings) is None
    for place in (tmp_path / "data" / "media", home):
        file = made(place / f"{place.name}.mp4")
        assert CLIPS.find(f"{place.name}.mp4", settings=settings) == file


def test_a_missing_file_is_named_with_the_places_and_what_to_do(home: Path) -> None:
    home.mkdir(parents=True)
    with pytest.raises(MediaError, match=rf"a\.mp4 is not there; looked in {home}; unpack the archives of owner/Clips"):
        CLIPS.find("a.mp4")
    assert CLIPS.look_up("a.mp4") is None
    assert CLIPS.path("a.mp4") == str(home / "a.mp4")
