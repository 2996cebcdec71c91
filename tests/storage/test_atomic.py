from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval.storage.atomic import replacing


def test_the_file_appears_complete(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    with replacing(path) as file:
        file.write(b"one")
        assert not path.exists()
    assert path.read_bytes() == b"one"
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_an_error_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), replacing(path) as file:
        file.write(bytes([1 // 0]))
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_parent_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(OSError, match="file"), replacing(tmp_path / "file" / "below"):
        pass


def test_what_can_be_made_again_waits_for_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[int] = []
    monkeypatch.setattr("os.fsync", waited.append)
    with replacing(tmp_path / "file", survives_power_loss=False) as file:
        file.write(b"one")
    assert (waited, (tmp_path / "file").read_bytes()) == ([], b"one")
    with replacing(tmp_path / "file"):
        pass
    assert len(waited) == 1
