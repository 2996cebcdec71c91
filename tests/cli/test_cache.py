from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest

from lmms_eval.cli.main import main
from lmms_eval.engine.response_cache import CacheFile, cache_path
from tests.cases import for_each


def filled(tmp: Path) -> CacheFile:
    file = CacheFile(cache_path(tmp))
    for number in range(5):
        file.put(str(number), "one" if number < 3 else "two", b"record")
    with sqlite3.connect(file.path) as connection:
        connection.execute("UPDATE responses SET stored = ? WHERE key = '0'", (time.time() - 10 * 86_400,))
    connection.close()
    return file


def test_cache_stats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    filled(tmp_path).close()
    assert main(["cache", "stats", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "responses: 5\n" in out and str(tmp_path / "responses.db") in out
    assert [line.split() for line in out.splitlines()[-2:]] == [["3", "one"], ["2", "two"]]


@for_each(
    ("flags", "left"),
    [(["--older-than", "5"], 4), (["--model", "one"], 2), (["--older-than", "5", "--model", "two"], 5)],
)
def test_cache_prune(tmp_path: Path, flags: list[str], left: int, capsys: pytest.CaptureFixture[str]) -> None:
    file = filled(tmp_path)
    assert main(["cache", "prune", str(tmp_path), *flags]) == 0
    assert f"deleted: {5 - left}\n" in capsys.readouterr().out
    assert file.stats().responses == left
    file.close()


def test_cache_verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = filled(tmp_path)
    assert main(["cache", "verify", str(tmp_path)]) == 0
    with sqlite3.connect(file.path) as connection:
        connection.execute("UPDATE responses SET record = 'other' WHERE key = '2'")
    connection.close()
    file.close()
    assert main(["cache", "verify", str(tmp_path)]) == 1
    assert main(["cache", "verify", str(tmp_path)]) == 0
    (tmp_path / "responses.db").write_bytes(b"rubbish" * 1000)
    assert main(["cache", "verify", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "deleted: 1; good ones: 4" in out and "responses.db.damaged-1" in out


@for_each("words", [["stats"], ["empty", "x"], ["stats", "x"], ["prune", "x"], ["verify", "x", "--model", "m"]])
def test_wrong_cache_commands(words: list[str], tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["cache", *words]) == 2
    assert capsys.readouterr().err.startswith("error: ")
    assert list(tmp_path.iterdir()) == []
