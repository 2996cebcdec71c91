"""Completion in the shells themselves, typed at through a pseudo-terminal."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.terminal import Terminal, terminal

HOSTILE = ["evil $(touch spoiled)", "evil;touch spoiled", "evil`touch spoiled`", "evil'\"\\&|>spoiled", "evil*{a}~#!1"]
"""Names of tasks in a user's folder. Each is the only one that begins with its first letter."""
NAMES = [f"{letter}_{name}" for letter, name in zip("QRSTU", HOSTILE, strict=True)]
START = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "PS1='READY '; bind 'set enable-bracketed-paste off'"),
    "zsh": (["zsh", "-f", "-i"], "PS1='READY '; unset zle_bracketed_paste; autoload -Uz compinit; compinit -u"),
}
SHELLS = [pytest.param(name, marks=pytest.mark.skipif(not shutil.which(name), reason=f"no {name}")) for name in START]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with the command, a cache, a file, and tasks of bad names."""
    made = tmp_path_factory.mktemp("completion")
    (made / "bin").mkdir()
    script = made / "bin" / "lmms-eval"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m lmms_eval "$@"\n')
    script.chmod(0o755)
    (made / "tasks").mkdir()
    for number, name in enumerate([*NAMES, "evil\nline", "evil\tname", "evil\x1b[31mred"]):
        text = yaml.safe_dump({"task": name, "dataset_path": "json", "doc_to_text": "q", "doc_to_target": "a"})
        (made / "tasks" / f"{number}.yaml").write_text(text)
    (made / "results of mine.json").write_text("{}")
    return made


@pytest.fixture
def environ(folder: Path) -> dict[str, str]:
    return {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(folder / "cache"), "TERM": "xterm",
        "PYTHONPATH": str(Path(__file__).parents[3]), "HOME": str(folder), "LC_ALL": "C.UTF-8",
    }  # fmt: skip


@pytest.fixture
def shell(request: pytest.FixtureRequest, folder: Path, environ: dict[str, str]) -> Iterator[Terminal]:
    """A shell of the test's parameter with completion, at its prompt, in the folder."""
    name = request.param
    command, setting = START[name]
    with terminal(command, environ, 300) as opened:
        opened.type(f"cd {folder}; {setting}; source <(lmms-eval completion {name}); echo STARTED\n")
        opened.wait_for("STARTED\r\n")
        opened.wait_for("READY ")
        yield opened


def _completed(shell: Terminal, line: str) -> list[str]:
    """Type a line and a tab, and return the words that the shell makes of the line that is there then."""
    shell.type(f"{line}\t")
    shell.type("\x01printf '<%s>\\n' \x05\n" + "echo END''ED\n")
    shown = shell.wait_for("ENDED\r\n").replace("\r\n", "\n")
    return [word for word in shown.split("\n") if word.startswith("<") and word.endswith(">")]


LINES = {
    "lmms-eval --output_pa": "--output_path",
    "lmms-eval tasks desc": "describe",
    "lmms-eval --model qwen2_5_v": "qwen2_5_vl",
    "lmms-eval --model=qwen2_5_v": "--model=qwen2_5_vl",
    "lmms-eval --tasks mme,mmmu_val_pass": "mme,mmmu_val_pass64",
    "lmms-eval --model openai --model_args model=x,base_u": "model=x,base_url=",
    "lmms-eval --config results": "results of mine.json",
}


@pytest.mark.parametrize("shell", SHELLS, indirect=True)
def test_words_are_completed(shell: Terminal) -> None:
    for line, last in LINES.items():
        assert _completed(shell, line)[-1] == f"<{last}>", line


@pytest.mark.parametrize("shell", SHELLS, indirect=True)
def test_names_that_shells_would_obey_stay_names(shell: Terminal, folder: Path) -> None:
    for name in NAMES:
        assert _completed(shell, f"lmms-eval --include_path tasks --tasks {name[0]}_")[-1] == f"<{name}>"
    assert not (folder / "spoiled").exists()


@pytest.mark.skipif(not shutil.which("fish"), reason="no fish")
def test_fish(folder: Path, environ: dict[str, str]) -> None:
    def completed(line: str) -> list[str]:
        script = f"lmms-eval completion fish | source; complete -C {shlex.quote(line)}"
        done = subprocess.run(
            ["fish", "-N", "-c", script], cwd=folder, env=environ, capture_output=True, text=True, timeout=60
        )
        assert done.stderr == ""
        return [row.split("\t")[0] for row in done.stdout.splitlines()]

    for line, last in LINES.items():
        assert completed(line) == [last], line
    for name in NAMES:
        assert completed(f"lmms-eval --include_path tasks --tasks {name[0]}_") == [name]
    assert not (folder / "spoiled").exists()
