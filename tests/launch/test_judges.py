"""A judged task in several processes: each judges its own documents, the results meet as all others do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases import for_each
from tests.evaluation.judged_kit import NAME, rated_task
from tests.faults.command import results
from tests.launch.test_processes import environment, free_port
from tests.servers.stub import StubServer

pytest.importorskip("torch")
DOCUMENTS = 60


def start(work: Path, urls: tuple[str, str], rank: int, port: int, cwd: Path) -> subprocess.Popen[str]:
    cwd.mkdir(parents=True, exist_ok=True)
    place = {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1"}
    words = [
        "-m", "lmms_eval", "--model", "openai", "--model_args", f"model=stub,base_url={urls[0]},num_concurrent=4",
        "--tasks", NAME, "--include_path", str(work / "tasks"), "--output_path", "out", "--log_samples",
        "--judge_model", "jury", "--judge_base_url", urls[1], "--judge_args", "num_concurrent=4",
        "--verbosity", "WARNING",
    ]  # fmt: skip
    return subprocess.Popen(
        [sys.executable, *words], env=environment(**place, MASTER_PORT=str(port)), cwd=cwd, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@for_each("shared", [True, False])
def test_two_processes_judge_every_document_once(tmp_path: Path, shared: bool) -> None:
    rated_task(tmp_path / "tasks", DOCUMENTS)
    port = free_port()
    with StubServer(delay=0.02) as model, StubServer(delay=0.02) as judge:
        folders = [tmp_path / ("node" if shared else f"node{rank}") for rank in range(2)]
        nodes = [start(tmp_path, (model.url, judge.url), rank, port, folders[rank]) for rank in range(2)]
        ended = [node.communicate(timeout=120) for node in nodes]
        assert [node.returncode for node in nodes] == [0, 0], ended
        stats = judge.stats()
    assert stats["total"] == len(stats["by_text"]) == DOCUMENTS
    journals = sorted(tmp_path.rglob("judgements-*.jsonl"))
    assert [len(path.read_text().splitlines()) > 5 for path in journals] == [True, True]
    document = results(folders[0] / "out")
    assert document["results"][NAME]["rating,none"] == 4.5
    assert (document["judge"]["asked"], document["judge"]["answered"]) == (DOCUMENTS, DOCUMENTS)
