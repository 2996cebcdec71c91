"""The family's first command, as its users type it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.cli.main import main
from tests.parity.vectors import DATA_DIR
from tests.servers.stub import StubServer

DATA = DATA_DIR / "popular_tasks"
needs_data = pytest.mark.skipif(not (DATA / "mme").is_dir(), reason=f"no small data of MME at {DATA}")


def first_command(model: str, model_args: str, *options: str) -> int:
    return main(
        ["--model", model, "--model_args", model_args, "--tasks", "mme", "--batch_size", "1", "--limit", "8", *options]
    )


def scored(folder: Path) -> tuple[int, dict[str, Any]]:
    (path,) = folder.rglob("*_results.json")
    found = json.loads(path.read_text("utf-8"))
    return found["outcomes"]["mme"]["scored"], found["results"]["mme"]


@needs_data
def test_with_a_tiny_model_and_data_below_a_folder(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    from tests.models.families import build

    weights = build.qwen2_5_vl(tmp_path / "model")
    options = ("--data_root", str(DATA), "--output_path", str(tmp_path / "out"))
    assert first_command("qwen2_5_vl", f"pretrained={weights}", *options) == 0
    count, numbers = scored(tmp_path / "out")
    assert count == 8
    assert numbers["mme_perception_score,none"] is not None


@needs_data
def test_with_a_server(tmp_path: Path) -> None:
    with StubServer() as server:
        options = ("--data_root", str(DATA), "--output_path", str(tmp_path / "out"))
        assert first_command("openai", f"model=m,base_url={server.url}", *options) == 0
    assert scored(tmp_path / "out")[0] == 8


def test_without_data_the_message_says_where_they_were_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert first_command("baseline", "strategy=gold", "--data_root", str(tmp_path)) == 2
    said = capsys.readouterr().err
    assert "no data files found" in said and str(tmp_path) in said
