from __future__ import annotations

import io
import shutil
import tarfile
from pathlib import Path

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.milebench.archives import unpack
from tests.tasks.milebench import made


def pack(archive: Path, folder: Path, top: str = "") -> Path:
    with tarfile.open(archive, "w:gz") as opened:
        for entry in sorted(folder.iterdir()):
            opened.add(entry, f"{top}{entry.name}")
    return archive


@pytest.mark.parametrize("top", ["", "./", "MileBench/"])
def test_all_data_sets_of_an_archive_are_put_in_place(tmp_path: Path, top: str) -> None:
    archive = pack(tmp_path / "part.tar.gz", made.write(tmp_path / "data", "TQA", "WebQA"), top)
    target = tmp_path / "home" / "milebench_data"
    unpack(archive, target, "TQA")
    assert sorted(entry.name for entry in target.iterdir()) == ["TQA", "WebQA"]
    assert (target / "TQA" / "TQA.json").is_file() and list((target / "WebQA" / "images").iterdir())
    (target / "TQA" / "mine.txt").write_text("kept", encoding="utf-8")
    unpack(archive, target, "TQA")
    assert (target / "TQA" / "mine.txt").is_file()


def test_an_incomplete_folder_is_not_touched(tmp_path: Path) -> None:
    archive = pack(tmp_path / "part.tar.gz", made.write(tmp_path / "data", "TQA"))
    (tmp_path / "target" / "TQA").mkdir(parents=True)
    with pytest.raises(DataError, match=r"is there without TQA\.json; remove it"):
        unpack(archive, tmp_path / "target", "TQA")


def damaged(archive: Path, member: tarfile.TarInfo, data: bytes = b"") -> None:
    member.size = len(data)
    with tarfile.open(archive, "w:gz") as opened:
        note = tarfile.TarInfo("TQA/TQA.json")
        note.size = 2
        opened.addfile(note, io.BytesIO(b"{}"))
        opened.addfile(member, io.BytesIO(data))


def link() -> tarfile.TarInfo:
    made_link = tarfile.TarInfo("TQA/images")
    made_link.type, made_link.linkname = tarfile.SYMTYPE, "/etc"
    return made_link


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (tarfile.TarInfo("../outside.txt"), "leads outside"),
        (tarfile.TarInfo("/outside.txt"), "leads outside"),
        (tarfile.TarInfo("TQA\\..\\outside.txt"), "leads outside"),
        (link(), "link or device"),
    ],
)
def test_nothing_leads_outside(tmp_path: Path, member: tarfile.TarInfo, message: str) -> None:
    damaged(tmp_path / "part.tar.gz", member)
    with pytest.raises(DataError, match=message):
        unpack(tmp_path / "part.tar.gz", tmp_path / "target", "TQA")
    assert not list((tmp_path / "target").iterdir())
    assert not (tmp_path / "outside.txt").exists()


def test_a_cut_archive_leaves_nothing(tmp_path: Path) -> None:
    archive = pack(tmp_path / "part.tar.gz", made.write(tmp_path / "data", "TQA", counts=(5, 9), size=(90, 80)))
    archive.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    with pytest.raises(DataError, match=r"part\.tar\.gz cannot be unpacked .*download it again"):
        unpack(archive, tmp_path / "target", "TQA")
    assert not list((tmp_path / "target").iterdir())


def test_an_archive_of_something_else(tmp_path: Path) -> None:
    archive = pack(tmp_path / "part.tar.gz", made.write(tmp_path / "data", "TQA"))
    with pytest.raises(DataError, match=r"holds no WebQA/WebQA\.json; it has: TQA"):
        unpack(archive, tmp_path / "target", "WebQA")


def test_an_archive_that_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = pack(tmp_path / "part.tar.gz", made.write(tmp_path / "data", "TQA"))
    full = shutil.disk_usage(tmp_path)._replace(free=10)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: full)
    with pytest.raises(DataError, match="needs at least"):
        unpack(archive, tmp_path / "target", "TQA")
