"""Media that documents name by relative paths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import MediaError
from lmms_eval.tasks._task_utils.media_files import find_media
from tests.cases import for_each


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("base/v.mp4", "cache/c.mp4", "home/relative/h.mp4", "root/r.mp4", "here/w.mp4", "base/both.mp4"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "root/both.mp4").write_bytes(b"")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LMMS_EVAL_MEDIA_ROOT", str(tmp_path / "root"))
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def test_folders_in_order(folders: Path) -> None:
    def find(name: Any, cache: str) -> str:
        found = find_media(name, "video", base_dir=folders / "base", cache_dir=cache, extensions=[".mp4"])
        return str(Path(found).resolve().relative_to(folders))

    cache = str(folders / "cache")
    assert find("v.mp4", cache) == "base/v.mp4"
    assert find({"path": "c"}, cache) == "cache/c.mp4"
    assert find(Path("h.mp4"), "relative") == "home/relative/h.mp4"
    assert find("r", cache) == "root/r.mp4"
    assert find("w", cache) == "here/w.mp4"
    assert find("both", cache) == "base/both.mp4"
    assert find(str(folders / "cache/c.mp4"), "relative") == "cache/c.mp4"


@pytest.mark.parametrize(
    "value",
    ["https://host/a.png", "data:image/png;base64,AAAA", b"bytes", {"bytes": b"x", "path": "p"}, {"array": [0.0]}],
)
def test_what_needs_no_looking_up(value: Any) -> None:
    assert find_media(value) is value


@for_each(("value", "message"), [("absent.mp4", "absent.mp4' not found below"), (None, "no video")])
def test_what_is_not_there(value: Any, message: str) -> None:
    with pytest.raises(MediaError, match=message):
        find_media(value, "video")
