"""Answers with pictures from the command to the files: storage, replay, cache, another place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.evaluation.run import run
from tests.evaluation.kit import NAME, config, run_folders
from tests.painting import DIFFERENT, Painter
from tests.servers.stub import StubServer

TIMES = ("elapsed", "token_counts", "finish_reason")


def rows(out: Path) -> list[dict[str, Any]]:
    """Of the newest samples file; every picture that it names is there."""
    path = sorted(out.rglob(f"*_samples_{NAME}.jsonl"))[-1]
    found = [json.loads(line) for line in path.read_text().splitlines()]
    for row in found:
        for part in row["parts"]:
            assert part["type"] == "text" or (path.parent / part["path"]).is_file()
    return [{key: value for key, value in row.items() if key not in TIMES} for row in found]


def evaluated(tmp: Path, out: str, painter: Painter | None = None, **over: Any) -> list[dict[str, Any]]:
    values = {"output_path": str(tmp / out), "log_samples": True, **over}
    assert run(config(tmp, **values), painter).exit_code == 0
    return rows(tmp / out)


def test_the_pictures_lie_beside_the_samples(tmp_path: Path) -> None:
    found = evaluated(tmp_path, "out", Painter(), model="painter")
    assert [row["exact_match"] for row in found] == [1.0] * 6
    assert len(list((tmp_path / "out" / "images").iterdir())) == 6
    assert found[2]["parts"][0] == {"type": "text", "text": "a2"}


def test_replay_gives_the_same_rows_elsewhere(tmp_path: Path) -> None:
    first = evaluated(tmp_path, "out", Painter(), model="painter")
    again = evaluated(tmp_path, "again", model="replay", model_args=f"path={tmp_path / 'out'}")
    assert again == first


def test_a_server_that_sends_pictures_and_the_cache(tmp_path: Path) -> None:
    with StubServer(fault="pictures") as server:
        asked = {"model": "openai", "model_args": f"model=m,base_url={server.url}", "use_cache": str(tmp_path / "c.db")}
        first = evaluated(tmp_path, "1", **asked)
        total = server.stats()["total"]
        assert evaluated(tmp_path, "2", **asked) == first
        assert server.stats()["total"] == total == 6
    assert [part["type"] for part in first[0]["parts"]] == ["text", "image", "text"]
    images = [path for path in (tmp_path / "2").rglob("images/*")]
    assert len(images) == 1  # the same picture six times


def test_without_a_folder_for_results_they_are_kept_with_the_journals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert run(config(tmp_path, model="painter", output_path=None), Painter()).exit_code == 0
    folder = run_folders(tmp_path / "state")[0]
    assert len(list((folder / "images").iterdir())) == min(6, DIFFERENT)
    resumed = Painter()
    assert run(config(tmp_path, model="painter", output_path=None, resume=str(folder)), resumed).exit_code == 0
    assert resumed.asked == []


def test_a_run_that_is_continued_elsewhere_brings_its_pictures(tmp_path: Path) -> None:
    first = evaluated(tmp_path, "out", Painter(), model="painter")
    folder, model = run_folders(tmp_path / "out")[0], Painter()
    assert evaluated(tmp_path, "new", model, model="painter", resume=str(folder)) == first
    assert model.asked == []
    assert len(list((tmp_path / "new" / "images").iterdir())) == 6


def test_a_completed_run_whose_picture_is_gone_asks_for_it_on_resume(tmp_path: Path) -> None:
    first = evaluated(tmp_path, "out", Painter(), model="painter")
    (tmp_path / "out" / first[4]["parts"][1]["path"]).unlink()
    model = Painter()
    assert evaluated(tmp_path, "out", model, model="painter", resume=True) == first
    assert model.asked == [4]
