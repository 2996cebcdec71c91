"""Pages made from declarations: every command's own help, and the Python API from its docstrings."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
from pathlib import Path

import sources

from lmms_eval.cli.commands import COMMANDS
from lmms_eval.cli.main import run_command

_ACTIONS = re.compile(r"^  \{([\w,-]+)\}", re.MULTILINE)
_API = {
    "Evaluating": ("lmms_eval.evaluator.simple_evaluate", "lmms_eval.evaluator.evaluate"),
    "Reading results": ("lmms_eval.results.load",),
}


def write(source: Path) -> list[Path]:
    """Write the pages into the assembled tree."""
    folder = source / "reference"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "help.md").write_text("\n".join(_helps()), encoding="utf-8")
    (folder / "api.rst").write_text("\n".join(_api()), encoding="utf-8")
    return [folder / "help.md", folder / "api.rst"]


def help_of(words: list[str]) -> str:
    """Return what ``lmms-eval WORDS --help`` prints."""
    told = io.StringIO()
    os.environ.update(COLUMNS="110", NO_COLOR="1")
    with contextlib.redirect_stdout(told):
        code = run_command([*words, "--help"])
    if code != 0:
        raise SystemExit(f"lmms-eval {' '.join(words)} --help ended with exit code {code}")
    return told.getvalue().rstrip()


def _helps() -> list[str]:
    lines = ["# Help of every command", "", "What `--help` prints, made from the declarations of options.", ""]
    for name in COMMANDS:
        shown = help_of([name])
        lines += [f"## {name}", "", "```text", shown, "```", ""]
        actions = _ACTIONS.search(shown)
        for action in actions[1].split(",") if actions else ():
            own = help_of([name, action])
            if own.splitlines()[0] != shown.splitlines()[0]:
                lines += [f"### {name} {action}", "", "```text", own, "```", ""]
    return lines


def _api() -> list[str]:
    title = "Python API"
    lines = [title, "=" * len(title), "", "Names that keep their meaning between releases of one major number.", ""]
    for caption, names in _API.items():
        lines += [caption, "-" * len(caption), ""]
        lines += [line for name in names for line in (f".. autofunction:: {name}", "")]
    caption = "Contracts: lmms_eval.api"
    lines += [caption, "-" * len(caption), ""]
    stub = ast.parse((sources.ROOT / "lmms_eval/api/__init__.pyi").read_text(encoding="utf-8"))
    for node in stub.body:
        if isinstance(node, ast.ImportFrom):
            lines += [line for alias in node.names for line in _entry(f"{node.module}.{alias.name}")]
    return lines


def _entry(name: str) -> list[str]:
    module, _, own = name.rpartition(".")
    is_class = own[0].isupper() or own == "lmms"
    members = ["   :members:", "   :show-inheritance:"] if is_class else []
    return [f".. auto{'class' if is_class else 'function'}:: {module}.{own}", *members, ""]
