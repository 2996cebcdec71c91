"""The samples file names what was really sent, also after a kill and from the response cache."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.workload import picture_task
from lmms_eval.config import build_config
from lmms_eval.evaluation.run import run
from tests.servers.stub import StubServer


@pytest.fixture
def server() -> Iterator[StubServer]:
    with StubServer() as started:
        yield started


def samples(tmp: Path, server: StubServer, out: str, **options: Any) -> list[dict[str, Any]]:
    config = build_config(
        {
            "model": "openai", "model_args": f"model=stub,base_url={server.url},num_concurrent=2,max_retries=0",
            "tasks": "bench_image", "include_path": str(tmp / "tasks"), "output_path": str(tmp / out),
            "log_samples": True, **options,
        }
    )  # fmt: skip
    run(config)
    file = next((tmp / out).rglob("*_samples_*.jsonl"))
    return [json.loads(line) for line in file.read_text().splitlines()]


def wanted(picture: Path) -> list[dict[str, Any]]:
    data = picture.read_bytes()
    return [
        {"type": "image", "path": str(picture), "sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data),
         "width": 1024, "height": 768}
    ]  # fmt: skip


def test_each_sample_names_its_pictures(tmp_path: Path, server: StubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    picture_task(tmp_path / "tasks", 3, 3)
    pictures = [tmp_path / "tasks" / f"bench_image_{number}.jpg" for number in range(3)]
    pictures[2].write_bytes(b"no picture")
    rows = samples(tmp_path, server, "out", use_cache=str(tmp_path / "cache"))
    assert [row.get("sent_media") for row in rows] == [wanted(pictures[0]), wanted(pictures[1]), None]
    asked = len(server.bodies())
    pictures[2].write_bytes(pictures[0].read_bytes())
    rows = samples(tmp_path, server, "out", use_cache=str(tmp_path / "cache"))  # goes on from the journal
    assert [row["sent_media"] for row in rows] == [wanted(picture) for picture in pictures]
    assert len(server.bodies()) == asked + 1
    rows = samples(tmp_path, server, "again", use_cache=str(tmp_path / "cache"))
    assert [row["sent_media"] for row in rows] == [wanted(picture) for picture in pictures]
    assert len(server.bodies()) == asked + 1
