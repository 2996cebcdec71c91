"""Media that documents of the family's tasks name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval.tasks._task_utils.media_resolver import resolve_media_reference
from tests.cases import for_each


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.delenv("LMMS_EVAL_MEDIA_ROOT", raising=False)
    return tmp_path


def place(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


@pytest.mark.parametrize("blanks", [" {}", "{}\n", "\t{} ", "\u3000{}\xa0"])
def test_blanks_around_a_reference_do_not_count(folder: Path, blanks: str) -> None:
    place(folder, "hf/v.mp4", "here/w.mp4", "hf/ds/a b.mp4")
    assert resolve_media_reference(blanks.format("v.mp4")) == str(folder / "hf/v.mp4")
    assert resolve_media_reference(blanks.format("v")) == str(folder / "hf/v.mp4")
    assert resolve_media_reference(blanks.format("w.mp4")) == "w.mp4"
    assert resolve_media_reference(blanks.format("a b"), cache_dir="ds") == str(folder / "hf/ds/a b.mp4")
    assert resolve_media_reference(blanks.format("https://a/b.mp4")) == "https://a/b.mp4"
    for none in (blanks.format("absent"), blanks.format("")):
        assert resolve_media_reference(none) == none


def test_places_in_order(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", str(folder / "mine"))
    monkeypatch.setenv("LMMS_EVAL_MEDIA_ROOT", str(folder / "root"))
    places = [
        "mine/v.mp4", "mine/more/v.mp4", "root/v.mp4", "hf/v.mp4", "hf/ds/v.mp4", "hf/datasets/ds/v.mp4",
        "hf/ds/video/v.mp4", "hf/ds/videos/v.mp4", "hf/ds/clips/v.mp4", "hf/datasets/ds/video/v.mp4",
        "hf/datasets/ds/videos/v.mp4",
    ]  # fmt: skip
    place(folder, *places)
    for name in places:
        assert resolve_media_reference("v", "video", "ds", ["MINE"], ["more"]) == str(folder / name)
        (folder / name).unlink()
    assert resolve_media_reference("v", "video", "ds", ["MINE"], ["more"]) == "v"


def test_audio_has_folders_and_extensions_of_its_own(folder: Path) -> None:
    place(folder, "hf/ds/audios/a.FLAC", "hf/ds/videos/b.mp4")
    assert resolve_media_reference("a", "audio", "ds") == str(folder / "hf/ds/audios/a.FLAC")
    assert resolve_media_reference("b", "audio", "ds") == "b"
    assert resolve_media_reference("a", "video", "ds") == "a"


def test_names_with_dots(folder: Path) -> None:
    place(folder, "hf/clip.0.5.mp4", "hf/v1.2")
    assert resolve_media_reference("clip.0.5") == str(folder / "hf/clip.0.5.mp4")
    assert resolve_media_reference("v1.2") == str(folder / "hf/v1.2")


def test_a_path_that_exists_comes_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place(folder, "here/v.mp4", "hf/v.mp4", "home/w.mp4")
    monkeypatch.setenv("HOME", str(folder / "home"))
    assert resolve_media_reference("v.mp4") == "v.mp4"
    assert resolve_media_reference("~/w.mp4") == str(folder / "home/w.mp4")
    assert resolve_media_reference("/nowhere/v.mp4") == str(folder / "hf/v.mp4")


@for_each(
    "value", [None, 5, b"x", {"path": "v.mp4"}, " ", "", "HTTP://h/v", "data:image/png;base64," + "A" * 9999, "x\0y"]
)
def test_what_is_not_found_comes_back(value: Any) -> None:
    assert resolve_media_reference(value) is value
