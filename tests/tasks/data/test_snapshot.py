from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.data.snapshot import fetch_videos, unpack
from tests.cases import for_each


def tar_bytes(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    folder = tmp_path / "snapshot"
    folder.mkdir()
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        archive.writestr("videos/one.mp4", b"1")
    whole = tar_bytes({"videos/two.mp4": b"2" * 3000, "videos/three.mp4": b"3"})
    (folder / "part_0.tar").write_bytes(whole[:1500])
    (folder / "part_1.tar").write_bytes(whole[1500:])
    return folder


def test_archives_and_split_tars_are_unpacked(snapshot: Path, tmp_path: Path) -> None:
    unpack(snapshot, tmp_path / "out")
    assert (tmp_path / "out/videos/one.mp4").read_bytes() == b"1"
    assert (tmp_path / "out/videos/two.mp4").read_bytes() == b"2" * 3000
    assert (tmp_path / "out/videos/three.mp4").read_bytes() == b"3"


def test_paths_that_leave_the_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    with zipfile.ZipFile(tmp_path / "s/bad.zip", "w") as archive:
        archive.writestr("../evil", b"x")
    with pytest.raises(DataError, match=r"bad\.zip holds '\.\./evil', which leads outside"):
        unpack(tmp_path / "s", tmp_path / "out")
    (tmp_path / "t").mkdir()
    (tmp_path / "t/bad.tar").write_bytes(tar_bytes({"../evil": b"x"}))
    with pytest.raises(DataError, match="leads outside"):
        unpack(tmp_path / "t", tmp_path / "out2")
    assert not (tmp_path / "evil").exists()


@pytest.fixture
def home(snapshot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``HF_HOME``, with a hub that gives the snapshot."""
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda **_: str(snapshot))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "hub").mkdir(parents=True)
    (tmp_path / "home" / "hub" / "weights").write_bytes(b"precious")
    return tmp_path / "home"


@pytest.mark.parametrize("force", ["force_unzip", "force_download"])
@pytest.mark.parametrize("cache_dir", ["{tmp}/thesis", "../thesis", ".", "./", "a/../..", "a/../hub", "/"])
def test_a_task_names_no_folder_outside_of_the_cache(home: Path, tmp_path: Path, cache_dir: str, force: str) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    kwargs = {"video": True, "cache_dir": cache_dir.format(tmp=tmp_path), force: True}
    with pytest.raises(DataError, match=r"t\.yaml: dataset_kwargs\.cache_dir .* names a folder below HF_HOME"):
        fetch_videos("org/videos", kwargs, "t.yaml")
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "years of work"
    assert (home / "hub" / "weights").read_bytes() == b"precious"


@pytest.mark.parametrize("name", ["hub", "mine", "linked"])
def test_only_a_folder_that_was_unpacked_here_is_replaced(home: Path, tmp_path: Path, name: str) -> None:
    (home / "mine").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (home / "linked").symlink_to(tmp_path / "elsewhere")
    kwargs = {"cache_dir": name, "force_unzip": True}
    with pytest.raises(DataError, match=rf"would replace {home / name}, which was not unpacked by lmms-eval"):
        fetch_videos("org/videos", kwargs, "t.yaml")
    assert (home / name).exists() and (home / "hub" / "weights").is_file() and (tmp_path / "elsewhere").is_dir()


def test_a_folder_that_was_unpacked_here_is_made_anew(home: Path, snapshot: Path) -> None:
    target = fetch_videos("org/videos", {"cache_dir": "a/bench"}, "t.yaml")
    (target / "videos" / "one.mp4").write_bytes(b"damaged")
    fetch_videos("org/videos", {"cache_dir": "a/bench"}, "t.yaml")
    assert (target / "videos" / "one.mp4").read_bytes() == b"damaged"
    fetch_videos("org/videos", {"cache_dir": "a/bench", "force_unzip": True}, "t.yaml")
    assert (target / "videos" / "one.mp4").read_bytes() == b"1"
    assert [path.name for path in target.parent.iterdir()] == ["bench"]


def test_a_link_into_the_cache_is_made_anew(home: Path, tmp_path: Path) -> None:
    old = home / "hub" / "datasets--org--videos" / "snapshots" / "old"
    old.mkdir(parents=True)
    (home / "bench").symlink_to(old)
    fetch_videos("org/videos", {"cache_dir": "bench", "create_link": True, "force_download": True}, "t.yaml")
    assert not (home / "bench").is_symlink()
    assert (home / "bench" / "videos" / "one.mp4").read_bytes() == b"1"
    assert old.is_dir()
    assert (tmp_path / "snapshot" / "a.zip").is_file()


def test_the_folder_exists_only_when_complete(snapshot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    calls: list[dict[str, Any]] = []

    def download(**kwargs: Any) -> str:
        calls.append(kwargs)
        return str(snapshot)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    target = tmp_path / "home" / "bench"
    (snapshot / "z.zip").write_bytes(b"PK\x03\x04 cut short")
    with pytest.raises(DataError, match=r"z\.zip cannot be unpacked .*download it again"):
        fetch_videos("org/videos", {"cache_dir": "bench"}, "t.yaml")
    assert not target.exists()
    (snapshot / "z.zip").unlink()
    assert fetch_videos("org/videos", {"cache_dir": "bench"}, "t.yaml") == target
    assert (target / "videos/one.mp4").is_file()
    fetch_videos("org/videos", {"cache_dir": "bench"}, "t.yaml")
    assert len(calls) == 2
    fetch_videos("org/videos", {"cache_dir": "linked", "create_link": True, "local_files_only": True}, "t.yaml")
    assert (tmp_path / "home/linked/videos/two.mp4").is_file()
    assert calls[-1]["local_files_only"]
    assert sorted(path.name for path in (tmp_path / "home").iterdir()) == ["bench", "linked"]


def test_cache_dir_is_needed() -> None:
    with pytest.raises(DataError, match="needs cache_dir"):
        fetch_videos("org/videos", {"video": True}, "t.yaml")


def test_with_create_link_archives_are_unpacked_and_all_else_is_shown(home: Path, snapshot: Path) -> None:
    (snapshot / "videos").mkdir()
    (snapshot / "videos" / "loose.mp4").write_bytes(b"4")
    (snapshot / "note.json").write_text("{}")
    target = fetch_videos("org/videos", {"cache_dir": "bench", "create_link": True}, "t.yaml")
    found = {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()}
    assert found == {
        "videos/one.mp4", "videos/two.mp4", "videos/three.mp4", "videos/loose.mp4", "note.json", ".lmms_eval_unpacked",
    }  # fmt: skip
    assert (target / "videos" / "loose.mp4").is_symlink()


def test_a_repository_without_archives_is_linked(home: Path, snapshot: Path) -> None:
    for archive in snapshot.iterdir():
        archive.unlink()
    (snapshot / "loose.mp4").write_bytes(b"4")
    for name, kwargs in (("plain", {}), ("link", {"create_link": True})):
        target = fetch_videos("org/videos", {"cache_dir": name, **kwargs}, "t.yaml")
        assert target.readlink() == snapshot
        assert (target / "loose.mp4").read_bytes() == b"4"


def test_a_link_to_a_snapshot_whose_archives_nobody_unpacked_is_not_complete(home: Path, snapshot: Path) -> None:
    old = home / "hub" / "datasets--org--videos" / "snapshots" / "old"
    old.mkdir(parents=True)
    (old / "a.zip").write_bytes((snapshot / "a.zip").read_bytes())
    (home / "bench").symlink_to(old)
    fetch_videos("org/videos", {"cache_dir": "bench", "create_link": True}, "t.yaml")
    assert (home / "bench" / "videos" / "one.mp4").read_bytes() == b"1"
    (old / "one.mp4").write_bytes(b"1")  # its owner has unpacked it in place
    (home / "own").symlink_to(old)
    assert fetch_videos("org/videos", {"cache_dir": "own", "create_link": True}, "t.yaml").is_symlink()


PACKERS = {"tar": lambda data: data, "tar.gz": gzip.compress, "tar.bz2": bz2.compress, "tar.xz": lzma.compress}


@for_each("ending", PACKERS)
@for_each("names", ["videos_part{}", "videos.part{}", "v-{}"])
def test_of_whole_archives_in_parts_each_is_unpacked(tmp_path: Path, ending: str, names: str) -> None:
    snapshot = tmp_path / "snapshot"
    snapshot.mkdir()
    for number in (1, 2, 10):
        packed = PACKERS[ending](tar_bytes({f"videos/{number}.mp4": str(number).encode() * 70_000}))
        (snapshot / f"{names.format(number)}.{ending}").write_bytes(packed)
    unpack(snapshot, tmp_path / "out")
    found = {path.name: path.stat().st_size for path in (tmp_path / "out" / "videos").iterdir()}
    assert found == {"1.mp4": 70_000, "2.mp4": 70_000, "10.mp4": 140_000}


@for_each("ending", PACKERS)
@for_each("size", [512, 1500, 1024 * 3])
def test_the_pieces_of_one_archive_are_joined_in_the_order_of_their_numbers(
    tmp_path: Path, ending: str, size: int
) -> None:
    snapshot = tmp_path / "snapshot"
    snapshot.mkdir()
    files = {f"videos/{number}.mp4": random.Random(number).randbytes(700) for number in range(30)}
    packed = PACKERS[ending](tar_bytes(files))
    for number, start in enumerate(range(0, len(packed), size)):
        (snapshot / f"videos.{ending}.{number}").write_bytes(packed[start : start + size])
    unpack(snapshot, tmp_path / "out")
    assert {f"videos/{path.name}": path.read_bytes() for path in (tmp_path / "out/videos").iterdir()} == files


def test_an_archive_that_goes_on_behind_its_end_or_lacks_its_last_piece_is_damaged(tmp_path: Path) -> None:
    whole = gzip.compress(tar_bytes({"one.mp4": b"1" * 9000}))
    for name, packed in {
        "twice": gzip.compress(tar_bytes({"one.mp4": b"1"}) + tar_bytes({"two.mp4": b"2" * 20_000})),
        "cut": whole[: len(whole) // 2],
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "v.tar.gz").write_bytes(packed)
        with pytest.raises(DataError, match=r"v\.tar\.gz cannot be unpacked .*download it again"):
            unpack(tmp_path / name, tmp_path / f"{name}-out")


def test_an_archive_of_another_kind_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "videos.zip.001").write_bytes(b"PK")
    unpack(tmp_path / "s", tmp_path / "out")
    assert "videos.zip.001 is an archive of a kind that is not unpacked here" in caplog.text
