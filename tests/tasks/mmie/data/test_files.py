from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.mmie.data import files
from lmms_eval.tasks.mmie.data.documents import documents
from lmms_eval.tasks.mmie.settings import Settings
from lmms_eval.tasks.mmie.view import ViewedPicture
from tests.cases import for_each
from tests.painting import png
from tests.tasks.mmie.data.kit import options, record, write


@for_each("place", ["", "MMIE/MMIE", "MMIE__MMIE", "MMIE"])
def test_places_of_local_data(tmp_path: Path, place: str) -> None:
    folder = write(tmp_path / place, [record("MSR-1")])
    assert files.data_file(Settings(data_root=str(tmp_path))) == folder / "data.json"


def test_the_excerpt_is_the_second_choice(tmp_path: Path) -> None:
    write(tmp_path, [record("MSR-1")], "overview.json")
    assert len(documents(None, options(tmp_path)).rows) == 1
    write(tmp_path, [record("MSR-1"), record("MSR-2")])
    assert len(documents(None, options(tmp_path)).rows) == 2


def test_the_hubs_cache_is_found(tmp_path: Path) -> None:
    write(tmp_path / "home" / "hub" / "datasets--MMIE--MMIE" / "snapshots" / "1a", [record("SA-1")])
    assert len(documents(None, options(None)).rows) == 1


def test_pictures_are_found_below_several_roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "data", [record("SA-1")])
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "b.png").write_bytes(png(1))
    (tmp_path / "data" / "images").mkdir()
    (tmp_path / "data" / "images" / "a.png").write_bytes(png(2))
    monkeypatch.setenv("MMIE_IMAGE_ROOT", str(tmp_path / "more"))
    (tmp_path / "third").mkdir()
    (tmp_path / "third" / "d.png").write_bytes(png(4))
    settings = Settings(data_root=str(tmp_path / "data"), media_root=str(tmp_path / "third"))
    finder = files.image_finder(settings)
    assert finder.find("images/d.png") == str(tmp_path / "third" / "d.png")
    assert finder("images/a.png") == ViewedPicture(str(tmp_path / "data" / "images" / "a.png"))
    assert finder.find("images/b.png") == str(tmp_path / "more" / "b.png")
    assert finder.find(str(tmp_path / "more" / "b.png")) == str(tmp_path / "more" / "b.png")
    assert finder("images/c.png") == "images/c.png"
    assert finder.find("") is None


def archive(folder: Path, names: list[str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "one.png").write_bytes(png(3))
    with tarfile.open(folder / "images.tar.gz", "w:gz") as made:
        for name in names:
            made.add(folder / "one.png", name)
    return folder / "images.tar.gz"


@pytest.mark.parametrize("inside", ["images/deep/one.png", "deep/one.png"])
def test_the_archive_is_unpacked_once(tmp_path: Path, inside: str) -> None:
    write(tmp_path / "data", [record("SA-1")])
    archive(tmp_path / "data", [inside])
    settings = Settings(data_root=str(tmp_path / "data"))
    found = files.image_finder(settings).find("images/deep/one.png")
    assert found == str(tmp_path / "home" / "mmie_data" / "images" / "deep" / "one.png")
    assert sorted(os.listdir(tmp_path / "home" / "mmie_data")) == ["images"]


def test_a_damaged_archive_leaves_nothing(tmp_path: Path) -> None:
    file = archive(tmp_path, ["images/one.png"])
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(DataError, match=r"cannot be unpacked.*download it again"):
        files.unpack(file, tmp_path / "target")
    archive(tmp_path, ["../outside.png"])
    with pytest.raises(DataError, match="leads outside"):
        files.unpack(file, tmp_path / "target")
    assert not (tmp_path / "target" / "images").exists() and not (tmp_path / "outside.png").exists()


def test_the_files_are_looked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, asked = Settings(data_root=str(write(tmp_path, [record("SA-1")]))), []
    found = files.data_file(settings)
    monkeypatch.setattr(files, "data_file", lambda given: (asked.append(given), found)[1])
    assert files.image_finder(settings) is files.image_finder(Settings(data_root=str(tmp_path)))
    assert asked == [settings]
