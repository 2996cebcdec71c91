"""Archives that clients unpack: damaged and hostile ones, and connections that are lost."""

from __future__ import annotations

import asyncio
import io
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from lmms_eval.entrypoints import AsyncEvalClient, EvalClient
from lmms_eval.errors import DataError, EvaluationServerError
from tests.server.scripted import Answer, scripted

Fetch = Callable[..., list[Path]]


@pytest.fixture(params=["sync", "async"])
def fetch(request: pytest.FixtureRequest) -> Fetch:
    """Download with a client of either kind."""

    def sync(url: str, folder: Path) -> list[Path]:
        with EvalClient(url) as client:
            return client.download("j1", folder)

    def asynchronous(url: str, folder: Path) -> list[Path]:
        async def call() -> list[Path]:
            async with AsyncEvalClient(url) as client:
                return await client.download("j1", folder)

        return asyncio.run(call())

    return sync if request.param == "sync" else asynchronous


def _archive(*entries: tuple[str, bytes, int]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content, mode in entries:
            entry = zipfile.ZipInfo(name)
            entry.external_attr = mode << 16
            archive.writestr(entry, content)
    return file.getvalue()


PLAIN = stat.S_IFREG | 0o644
SOUND = _archive(("m/1_results.json", b"{}", PLAIN), ("m/.runs/k/run.json", b"[]", PLAIN))


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_files_lie_in_the_folder(fetch: Fetch, tmp_path: Path) -> None:
    with scripted([Answer(status=0), Answer({"detail": "busy"}, 503), Answer(SOUND)]) as server:
        found = fetch(server.url, tmp_path / "new" / "files")
    assert _files(tmp_path / "new" / "files") == {"m/1_results.json": b"{}", "m/.runs/k/run.json": b"[]"}
    assert {path.name for path in found} == {"1_results.json", "run.json"}
    assert [request["path"] for request in server.seen] == ["/jobs/j1/files"] * 3


@pytest.mark.parametrize(
    "entry",
    [
        ("../outside", b"x", PLAIN),
        ("m/../../outside", b"x", PLAIN),
        ("/tmp/outside", b"x", PLAIN),
        ("m/link", b"/etc/passwd", stat.S_IFLNK | 0o777),
        ("led/away", b"x", PLAIN),
        (".", b"x", PLAIN),
    ],
)
def test_nothing_is_written_elsewhere(fetch: Fetch, tmp_path: Path, entry: tuple[str, bytes, int]) -> None:
    folder, other = tmp_path / "files", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    (folder / "led").symlink_to(other)
    answer = Answer(_archive(("sound", b"x", PLAIN), entry))
    with scripted([answer]) as server, pytest.raises(EvaluationServerError, match="nothing was written"):
        fetch(server.url, folder)
    assert _files(tmp_path) == {}


def test_a_file_takes_the_place_of_a_link(fetch: Fetch, tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"kept")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "one").symlink_to(tmp_path / "kept")
    with scripted([Answer(_archive(("one", b"new", PLAIN)))]) as server:
        fetch(server.url, tmp_path / "files")
    assert (tmp_path / "kept").read_bytes() == b"kept"
    assert (tmp_path / "files" / "one").read_bytes() == b"new"


def test_what_cannot_be_used_is_said(fetch: Fetch, tmp_path: Path) -> None:
    for content in (SOUND[:-30], b"<html>", SOUND.replace(b"{}", b"{]")):
        with scripted([Answer(content)]) as server, pytest.raises(EvaluationServerError, match="damaged"):
            fetch(server.url, tmp_path / "files")
    (tmp_path / "file").write_bytes(b"")
    with scripted([Answer(SOUND)]) as server, pytest.raises(DataError, match="cannot be written"):
        fetch(server.url, tmp_path / "file")
    refusal = Answer({"detail": "Job j1 not found"}, 404)
    with scripted([refusal]) as server, pytest.raises(EvaluationServerError, match="not found"):
        fetch(server.url, tmp_path / "files")
