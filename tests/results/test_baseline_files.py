"""Where a baseline's samples lie: here, behind a preset, or on the hub."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lmms_eval.errors import ConfigError, DataError
from lmms_eval.results.baseline import choose_file, find_baseline, read_presets
from tests.cases import for_each
from tests.servers.hub import hub

STAMP, LATER = "20250101_000000", "20250202_000000"


def found(text: str, presets: Path | None = None, task: str = "mme") -> Path | None:
    return find_baseline(text, str(presets) if presets else None).file(task)


def test_a_file_is_for_every_task(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    assert found(str(file)) == file
    assert found("a.jsonl") == Path("a.jsonl")


def test_of_a_folder_the_newest_samples_of_the_task(tmp_path: Path) -> None:
    for model, name in (("m", f"{STAMP}_samples_mme"), ("n", f"{LATER}_samples_mme"), ("m", f"{LATER}_samples_ai2d")):
        (tmp_path / model).mkdir(exist_ok=True)
        (tmp_path / model / f"{name}.jsonl").write_text("")
    assert found(str(tmp_path)) == tmp_path / "n" / f"{LATER}_samples_mme.jsonl"
    assert found(str(tmp_path), task="mmmu") is None


def test_the_only_file_of_lines_needs_no_name() -> None:
    assert choose_file(["README.md", "answers.jsonl"], "mme") == "answers.jsonl"
    assert choose_file(["a.jsonl", "b.jsonl"], "mme") is None
    assert choose_file([f"{STAMP}_samples_ai2d.jsonl"], "mme") is None
    assert choose_file([], "mme") is None
    names = [f"{STAMP}_samples_{part}.jsonl" for part in ("a%3Amme", "mme", "b:mme")]
    assert [choose_file(names, task) for task in ("a:mme", "mme", "b:mme")] == names


def test_presets(tmp_path: Path) -> None:
    presets = tmp_path / "presets.yaml"
    presets.write_text(
        f"qwen25vl: {{mme: runs/a.jsonl, mmbench: {tmp_path}/b.jsonl}}\nother: one.jsonl\nhub: hf://user/repo\n"
    )
    assert found("qwen25vl", presets) == tmp_path / "runs/a.jsonl"
    assert found("qwen25vl:mmbench", presets) == tmp_path / "b.jsonl"
    assert found("qwen25vl", presets, task="ai2d") is None
    assert found("other", presets) == found("other:mme", presets) == tmp_path / "one.jsonl"
    assert read_presets(presets)["hub"] == "hf://user/repo"


@for_each(
    ("text", "words"),
    [
        ("qwen25v", "neither a samples file nor a preset; did you mean qwen25vl.*has: qwen25vl"),
        ("qwen25vl:ai2d", "has no task ai2d; it has: mme"),
        ("hf://user", "write hf://USER/REPO"),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path: Path, text: str, words: str) -> None:
    presets = tmp_path / "presets.yaml"
    presets.write_text("qwen25vl: {mme: a.jsonl}")
    with pytest.raises(ConfigError, match=words):
        find_baseline(text, str(presets))
    with pytest.raises(ConfigError, match=r"baseline_presets FILE|hf://USER"):
        find_baseline(text, None)


@for_each("content", ["- a", "a: 3", "a: {b: 3}", "3: a", "a: {b: {c: d}}", "a: [", "text"])
def test_a_file_that_holds_no_presets(tmp_path: Path, content: str) -> None:
    presets = tmp_path / "presets.yaml"
    presets.write_text(content)
    with pytest.raises(ConfigError, match=r"--baseline_presets .*presets\.yaml"):
        read_presets(presets)


HELD = {
    f"m/{STAMP}_samples_mme.jsonl": b'{"doc_id": 0}\n',
    f"m/{LATER}_samples_mme.jsonl": b'{"doc_id": 1}\n',
    "README.md": b"# none",
}


CODE = """
import sys
from lmms_eval.errors import DataError
from lmms_eval.results.baseline import find_baseline

for text in sys.argv[1:]:
    try:
        file = find_baseline(text, None).file("mme")
        print(file and file.read_text().strip())
    except DataError as error:
        print(f"DataError {error}")
"""


def test_samples_of_the_hub(tmp_path: Path) -> None:
    asked = [
        f"hf://user/repo/m/{STAMP}_samples_mme.jsonl", "hf://user/repo", "hf://user/repo/m", "hf://user/repo/n",
        "hf://user/repo/none.jsonl", "hf://user/nothing",
    ]  # fmt: skip
    with hub({"user/repo": HELD}) as served:
        done = subprocess.run(
            [sys.executable, "-c", CODE, *asked],
            env=served.environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    one, newest, inner, empty, missing, unknown = done.stdout.splitlines()
    assert (one, newest, inner, empty) == ('{"doc_id": 0}', '{"doc_id": 1}', '{"doc_id": 1}', "None")
    assert missing.startswith("DataError --baseline hf://user/repo/none.jsonl: the hub does not give none.jsonl")
    assert "the list of files of the data set user/nothing" in unknown


def test_a_missing_file_is_told_when_it_is_read(tmp_path: Path) -> None:
    from lmms_eval.compare.baseline import check_baseline

    file = found(str(tmp_path / "none.jsonl"))
    assert file is not None
    with pytest.raises(DataError, match="no such file"):
        check_baseline(file)
