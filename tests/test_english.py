"""The check of the project's English finds words to avoid in prose, and passes over code and quotations."""

from __future__ import annotations

from pathlib import Path

import pytest

from release.english import EVERYWHERE, files, findings, main
from tests.cases import for_each

ROOT = Path(__file__).parents[1]


@for_each(
    ("name", "text", "lines"),
    [
        ("a.py", '"""Tells the server."""\n', [1]),
        ("a.py", "x = 1  # which stands beside y\n", [1, 1]),
        ("a.py", 'def f() -> None:\n    """Return.\n\n    It goes on.\n    """\n', [4]),
        ("a.py", 'raise ValueError(f"{name} is told twice")\n', [1]),
        ("a.py", 'told = stands(beside)\nkey = "told"\n', []),
        ("a.py", '"""Quote ``told`` and "it stands"."""\n', []),
        ("a.py", '"""A stand-alone and stand-in word."""\n', []),
        ("a.md", "One line\n\nNone of them is told.\n", [3, 3]),
        ("a.md", "```text\nit is told\n```\n\n`told` [a](told.md) <!-- told -->\n", []),
    ],
)
def test_what_is_found(tmp_path: Path, name: str, text: str, lines: list[int]) -> None:
    file = tmp_path / name
    file.write_text(text)
    assert [one.line for one in findings(file)] == lines


def test_the_exit_code_and_the_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.md").write_text("A file is read.\n")
    assert main(["good.md"]) == 0
    (tmp_path / "bad.md").write_text("It is told and told.\n")
    assert main(["--counts", "bad.md"]) == 1
    printed = capsys.readouterr().out
    assert "     2 told\n" in printed and printed.endswith("2 found\n")
    assert main(["bad.md"]) == 1
    assert "bad.md:1: “told” (report, return, state, show)" in capsys.readouterr().out


def test_the_whole_project_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names = {path.as_posix() for path in files(())}
    assert {"README.md", "lmms_eval/errors.py", "docs/start.md", "lmms_eval/tasks/mme/README.md"} <= names
    assert not any("bundle" in name or "/web/" in name for name in names)
    assert all(Path(name).exists() for name in EVERYWHERE)
