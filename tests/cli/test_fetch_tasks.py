"""``lmms-eval fetch TASKS`` against the hub on loopback."""

from __future__ import annotations

import io
import json
import random
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.cli.fetch import shown_size
from lmms_eval.cli.main import main
from tests.cases import for_each
from tests.servers.hub import Hub, hub

CARD = b"---\nconfigs:\n- config_name: default\n  data_files:\n  - split: test\n    path: data/test-*\n---\n"
TASK = """
task: {name}
dataset_path: user/{name}
dataset_kwargs: {kwargs}
test_split: test
doc_to_text: "{{{{question}}}}"
doc_to_target: answer
"""
PROGRAM = """
import json, os, sys
from lmms_eval.cli.main import main

for words in json.loads(sys.argv[1]):
    print(">>>", *words)
    sys.stdout.flush()
    code = main(words)
    print("code", code)
"""
ROWS, LONG = "data/test-00000-of-00001.parquet", "data/test-long.parquet"
CHUNK = 10 * 1024 * 1024
"""Bytes that ``huggingface_hub`` writes at once: what comes after the last whole chunk is asked for again."""


def rows(count: int, length: int = 10) -> bytes:
    """Rows with random texts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    target = io.BytesIO()
    source = random.Random(7)
    questions = [source.randbytes(length // 2).hex() for _ in range(count)]
    pq.write_table(pa.table({"question": questions, "answer": questions}), target)
    return target.getvalue()


def videos() -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("clips/one.mp4", b"film")
    return target.getvalue()


def run(served: Hub, folder: Path, *commands: list[str]) -> dict[str, tuple[str, int]]:
    """Output and exit code of each command, all in one process that takes the stub for the hub."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([[*words, "--include-path", str(folder)] for words in commands])],
        env=served.environment(folder / "home"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    found = {}
    for block in done.stdout.split(">>> ")[1:]:
        head, _, rest = block.partition(" --include-path")
        text, _, code = rest.partition("\n")[2].rpartition("code ")
        found[head] = (text, int(code))
    return found


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    def write(name: str, **kwargs: Any) -> None:
        (tmp_path / f"{name}.yaml").write_text(TASK.format(name=name, kwargs=json.dumps(kwargs)))

    write("zz_plain", token=True)
    write("zz_broken")
    write("zz_cut")
    write("zz_video", video=True, cache_dir="zz_clips")
    write("zz_absent")
    (tmp_path / "zz_some.yaml").write_text("group: zz_some\ntask: [zz_plain, zz_absent]\n")
    return tmp_path


def test_tasks_are_fetched_verified_and_tried(tasks: Path) -> None:
    content = rows(3)
    plain = {ROWS: content, "README.md": CARD, "data/unused.parquet": b"x" * 9000}
    archive = {**plain, "videos_1.zip": videos()}
    long = {"README.md": CARD, LONG: rows(2, CHUNK)}
    sets = {"user/zz_plain": plain, "user/zz_broken": plain, "user/zz_cut": long, "user/zz_video": archive}
    commands = [
        ["fetch", "zz_plain", "--dry-run"], ["fetch", "zz_some"], ["fetch", "zz_plain"], ["fetch", "zz_cut"],
        ["fetch", "zz_video", "--dry-run"], ["fetch", "zz_video"], ["tasks", "describe", "zz_plain"],
    ]  # fmt: skip
    with hub(sets) as served:
        served.cut[LONG] = CHUNK + 1000
        served.damaged.add("videos_1.zip")
        done = run(served, tasks, *commands, ["fetch", "zz_video", "--verbosity", "WARNING"])
        ranges = [asked for asked in served.asked if asked[0] == "GET" and asked[1] == LONG and asked[2]]

    size = shown_size(len(content))
    text, code = done["fetch zz_plain --dry-run"]
    assert code == 0 and f"user/zz_plain: 1 files, {size}, {size} to download" in text
    assert f"Total {size}; {size} to download" in text and "ready" not in text

    text, code = done["fetch zz_some"]
    assert code == 1 and "zz_plain: ready, 3 documents" in text
    assert "1 of 2 tasks are not ready" in text and "zz_absent: data set 'user/zz_absent' of the hub" in text
    assert done["fetch zz_plain"][1] == 0 and "0 B to download" in done["fetch zz_plain"][0]
    assert [asked[2] for asked in ranges] == [f"bytes={CHUNK}-"]

    assert done["fetch zz_cut"][1] == 0 and "ready, 2 documents" in done["fetch zz_cut"][0]
    clips = tasks / "home" / "zz_clips"
    text, code = done["fetch zz_video --dry-run"]
    assert code == 0 and "videos_1.zip" in text and f"unpacked to {clips}" in text
    text, code = done["fetch zz_video"]
    assert code == 1 and "videos_1.zip: what was fetched has not the digest that the hub states" in text
    assert done["tasks describe zz_plain"][0].splitlines()[-1] == "missing here: nothing"
    text, code = done["fetch zz_video --verbosity WARNING"]
    assert code == 0 and f"unpacked: {clips}" in text
    assert (clips / "clips" / "one.mp4").read_bytes() == b"film"


def test_local_data_need_no_hub(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rows.jsonl").write_text('{"question": "1 + 1", "answer": "2"}\n')
    local = TASK.format(name="zz_local", kwargs='{"data_files": "rows.jsonl"}').replace("user/zz_local", "json")
    (tmp_path / "local.yaml").write_text(local.replace("split: test", "split: train"))
    assert main(["fetch", "zz_local", "--include-path", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "zz_local: nothing to fetch: its data are local, or read by its own code", "zz_local: ready, 1 documents",
    ]  # fmt: skip


def test_a_folder_is_for_nltk(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fetch", "mme", "--to", "somewhere"]) == 2
    assert "--to is for nltk" in capsys.readouterr().err
    assert main(["fetch", "nltk", "--dry-run", "--to", "somewhere"]) == 0
    assert "would be installed" in capsys.readouterr().out and not Path("somewhere").exists()


@for_each(("size", "text"), [(0, "0 B"), (999, "999 B"), (1234, "1.2 kB"), (9.15e9, "9.2 GB"), (2e15, "2000.0 TB")])
def test_sizes(size: float, text: str) -> None:
    assert shown_size(size) == text
