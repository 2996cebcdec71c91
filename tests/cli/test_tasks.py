from __future__ import annotations

import re
from pathlib import Path

import pytest

from lmms_eval.cli.main import main
from tests.cases import for_each
from tests.parity.vectors import GOLDEN_DIR

INPUTS = GOLDEN_DIR / "harness" / "inputs"
needs_inputs = pytest.mark.skipif(not INPUTS.is_dir(), reason=f"no recorded inputs at {INPUTS}")
TASK = "task: {name}\ndataset_path: nowhere/at-all\ntest_split: test\noutput_type: {kind}\ntag: {tag}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "deep").mkdir()
    (tmp_path / "one.yaml").write_text(TASK.format(name="zz_one", kind="generate_until", tag="zz_tag"))
    (tmp_path / "deep" / "two.yaml").write_text(TASK.format(name="zz_two", kind="multiple_choice", tag="zz_tag"))
    (tmp_path / "group.yaml").write_text("group: zz_group\ntask: [zz_one, zz_two]\n")
    return tmp_path


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


@pytest.mark.parametrize("words", [["tasks"], ["tasks", "list"]])
def test_list(words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--include-path", str(folder)]) == 0
    captured = capsys.readouterr()
    head, blank, *names = captured.out.splitlines()
    assert head == f"Available tasks ({len(names)}):"
    assert blank == ""
    assert names == sorted(names)
    assert {"  zz_one", "  zz_two", "  zz_group", "  zz_tag", "  megabench"} <= set(names)
    assert captured.err == ""


@pytest.mark.parametrize("flag", ["list_subtasks", "subtasks"])
def test_subtasks(flag: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--tasks", flag] if flag.startswith("list") else ["tasks", flag]
    assert main([*words, "--include_path", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert _cells(lines[0]) == ["Task", "Config Location", "Output Type"]
    assert set(lines[1]) == {"|", "-"}
    rows = {cells[0]: cells[1:] for cells in map(_cells, lines[2:])}
    assert rows["zz_two"] == [str(folder / "deep" / "two.yaml"), "multiple_choice"]
    assert rows["megabench_core"][0].startswith("lmms_eval/tasks/megabench/")
    assert "zz_group" not in rows


def test_groups_and_tags(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "groups", "--include-path", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert _cells(lines[0]) == ["Group", "Config Location"]
    assert ["zz_group", str(folder / "group.yaml")] in map(_cells, lines)
    assert main(["--tasks", "list_tags", "--include_path", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert _cells(lines[0]) == ["Tag"]
    assert ["zz_tag"] in map(_cells, lines)


def test_plain_names_of_the_flag(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = []
    for level in ("INFO", "ERROR"):
        assert main(["--tasks", "list", "--include_path", str(folder), "--verbosity", level]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    assert " - zz_one" in outputs[0].splitlines()


@needs_inputs
def test_tasks_of_a_plugin_package(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.syspath_prepend(str(INPUTS / "plugin"))
    monkeypatch.setenv("LMMS_EVAL_PLUGINS", "golden_plugin")
    assert main(["tasks"]) == 0
    assert "  plug_task" in capsys.readouterr().out.splitlines()


@for_each(
    ("arguments", "message"),
    [
        (["tasks", "everything"], "invalid choice: 'everything'"),
        (["tasks", "--include-path", "/no/such/folder"], "there is no such folder"),
        (["tasks", "--verbosity", "loud"], "--verbosity: invalid choice"),
        (["--tasks", "list", "--include_path", "/no/such/folder"], "there is no such folder"),
    ],
)
def test_mistakes(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert re.fullmatch(r"error: .*\n", error)
    assert message in error
