from __future__ import annotations

import gzip
import io
import shutil
import stat
import tarfile
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks._task_utils import archives
from lmms_eval.tasks._task_utils.archives import alone, is_archive, merge, unpacked
from tests.cases import for_each

CONTENT = {"a/1.txt": b"one", "a/b/2.txt": bytes(range(256)) * 400, "é.json": b"{}"}


def zipped(file: Path, content: dict[str, bytes] = CONTENT) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, data in content.items():
            opened.writestr(name, data)
    return file


def tarred(file: Path, mode: str) -> Path:
    with tarfile.open(file, f"w:{mode}") as opened:
        for name, data in CONTENT.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            opened.addfile(member, io.BytesIO(data))
    return file


def made(folder: Path, name: str) -> Path:
    modes = {"tgz": "gz", "gz": "gz", "xz": "xz", "bz2": "bz2", "tar": ""}
    kind = name.rpartition(".")[2].lower()
    return zipped(folder / name) if kind == "zip" else tarred(folder / name, modes[kind])


NAMES = ("a.zip", "a.ZIP", "a.tar", "a.tar.gz", "a.tgz", "a.tar.xz", "a.tar.bz2")


@for_each("name", NAMES)
def test_all_kinds(tmp_path: Path, name: str) -> None:
    archive, target = made(tmp_path, name), tmp_path / "target"
    assert is_archive(archive)
    with alone(target), unpacked(archive, target) as folder:
        assert folder.parent == target
        found = {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        (folder / "a" / "b").rename(target / "kept")
    assert found == CONTENT
    assert [entry.name for entry in target.iterdir()] == ["kept"]


@for_each("name", NAMES)
def test_cut_archives_leave_nothing(tmp_path: Path, name: str) -> None:
    archive, target = made(tmp_path, name), tmp_path / "target"
    archive.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    with (
        alone(target),
        pytest.raises(DataError, match=r"a\.\S+ cannot be unpacked .*download it again"),
        unpacked(archive, target),
    ):
        raise AssertionError("never here")
    assert not list(target.iterdir())


def damaged(file: Path) -> Path:
    """A zip whose compressed bytes are garbled."""
    zipped(file, {"a.txt": bytes(range(256)) * 400})
    content = bytearray(file.read_bytes())
    content[60:160] = b"\xff" * 100
    file.write_bytes(content)
    return file


def encrypted(file: Path) -> Path:
    content = bytearray(zipped(file, {"a.txt": b"text"}).read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(signature) + offset] |= 1
    file.write_bytes(content)
    return file


def linked(file: Path) -> Path:
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(file, "w") as opened:
        opened.writestr("a.txt", "text")
        opened.writestr(info, "/etc")
    return file


@for_each(
    ("make", "message"),
    [
        (damaged, "download it again"),
        (encrypted, "encrypted"),
        (linked, "'link', which is a link or device"),
        (lambda file: zipped(file, {"a": b"", "../b": b""}), "leads outside"),
        (lambda file: zipped(file, {"a": b"", "/b": b""}), "leads outside"),
        (lambda file: zipped(file, {"a": b"", "c\\b": b""}), "leads outside"),
        (lambda file: file, "No such file"),
    ],
)
def test_zips_that_are_refused(tmp_path: Path, make, message: str) -> None:
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises(DataError, match=message), unpacked(make(tmp_path / "a.zip"), target):
        raise AssertionError("never here")
    assert not list(target.iterdir()) and not (tmp_path / "b").exists()


@for_each("name", ["a.zip", "a.tar.gz", "a.tar"])
def test_content_that_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    archive = made(tmp_path, name)
    free = shutil.disk_usage(tmp_path)._replace(free=sum(map(len, CONTENT.values())) - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: free)
    with pytest.raises(DataError, match=r"needs at least .* GB free"), unpacked(archive, tmp_path):
        raise AssertionError("never here")
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_merging_keeps_what_is_there(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    for folder, names in ((source, ("a/1", "a/2", "b/3", "x.json")), (target, ("a/2", "x.json"))):
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(folder.name)
    merge(source, target)
    found = {str(file.relative_to(target)): file.read_text() for file in target.rglob("*") if file.is_file()}
    assert found == {"a/1": "source", "a/2": "target", "b/3": "source", "x.json": "target"}
    for ours, theirs in (("c/1", "c"), ("d", "d/1")):
        for folder, name in ((source, ours), (target, theirs)):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("")
        with pytest.raises(DataError, match="a folder in one place and a file in the other"):
            merge(source, target)
        shutil.rmtree(source)


def test_a_target_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be made or opened"), alone(tmp_path / "file" / "x"):
        raise AssertionError("never here")
    with pytest.raises(DataError, match="cannot be unpacked"), unpacked(made(tmp_path, "a.zip"), tmp_path / "none"):
        raise AssertionError("never here")


def test_other_files_are_no_archives() -> None:
    assert not any(is_archive(Path(name)) for name in ("a.json", "zip", "a.gz", "a.tar.zst", "a.npz"))


def test_an_archive_that_grows_beyond_measure_is_refused(tmp_path: Path) -> None:
    bounds = archives.ArchiveBounds(free_bytes=1000)
    bomb = {"a.bin": b"0" * 1_000_000}
    with tarfile.open(tmp_path / "b.tar.xz", "w:xz") as opened:
        member = tarfile.TarInfo("a.bin")
        member.size = 1_000_000
        opened.addfile(member, io.BytesIO(bomb["a.bin"]))
    for archive in (zipped(tmp_path / "a.zip", bomb), tmp_path / "b.tar.xz"):
        with pytest.raises(DataError, match="over 200 times its size"), unpacked(archive, tmp_path, bounds=bounds):
            raise AssertionError("never here")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "b.tar.xz"]


def test_an_archive_of_too_many_entries_is_refused(tmp_path: Path) -> None:
    bounds = archives.ArchiveBounds(entries=2)
    for name in ("a.zip", "a.tar.gz"):
        archive = made(tmp_path, name)
        with pytest.raises(DataError, match="more than 2 entries"), unpacked(archive, tmp_path, bounds=bounds):
            raise AssertionError("never here")


@for_each("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.GNUTYPE_SPARSE])
def test_headers_that_claim_memory_are_refused(tmp_path: Path, kind: bytes) -> None:
    size = 64 * 2**20
    header = tarfile.TarInfo("x")
    header.type, header.size = kind, size
    with gzip.open(tmp_path / "a.tar.gz", "wb", compresslevel=1) as file:
        file.write(header.tobuf(tarfile.GNU_FORMAT))
        for _ in range(size // 2**20):
            file.write(b"n" * 2**20)
    tracemalloc.start()
    refused = pytest.raises(DataError, match=r"a header of 67,108,864 bytes|a sparse file")
    with refused, unpacked(tmp_path / "a.tar.gz", tmp_path):
        raise AssertionError("never here")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * 2**20
