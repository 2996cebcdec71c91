from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from lmms_eval.cli import doctor as remedies
from lmms_eval.cli.doctor import remedy_lines
from lmms_eval.cli.main import main

REQUIREMENTS = [
    "numpy>=1.26",
    "no-such-base>=2",
    "no-such-part>=1; extra == 'odd'",
    "numpy; extra == 'here'",
    "no-such-either; extra == 'all'",
]


def test_each_missing_part_has_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remedies, "_source", lambda part: shlex.quote(f"lmms_eval[{part}]" if part else "lmms_eval"))
    lines = remedy_lines(REQUIREMENTS, {"NLTK_DATA": str(tmp_path)})
    install = f"{shlex.quote(sys.executable)} -m pip install"
    assert lines[:4] == [
        "# needed by every run: no-such-base", f"{install} lmms_eval",
        "# odd: no-such-part", f"{install} 'lmms_eval[odd]'",
    ]  # fmt: skip
    assert lines[lines.index("# data of NLTK: punkt_tab, wordnet") + 1] == "lmms-eval fetch nltk"
    assert not any("here" in line or "either" in line for line in lines)


def test_a_folder_of_sources_is_installed_from_there(monkeypatch: pytest.MonkeyPatch) -> None:
    class Installed:
        def read_text(self, name: str) -> str:
            assert name == "direct_url.json"
            return json.dumps({"url": "file:///my%20code/it", "dir_info": {"editable": True}})

    monkeypatch.setattr(remedies.metadata, "distribution", lambda name: Installed())
    assert remedies._source("odd") == "-e '/my code/it[odd]'"


def test_system_packages_by_the_manager_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    title = "# Java, for BLEU-4 and CIDEr of captions"
    lines = remedy_lines(REQUIREMENTS, {})
    assert lines[lines.index(title) + 1].startswith("# no package manager")
    (tmp_path / "dnf").touch(0o755)
    lines = remedy_lines(REQUIREMENTS, {})
    assert lines[lines.index(title) + 1] == "sudo dnf install -y java-latest-openjdk-headless"


def test_it_prints_a_script_and_runs_nothing(capsys, monkeypatch) -> None:
    def refuse(*words: object, **more: object) -> None:
        raise AssertionError(words)

    monkeypatch.setattr("lmms_eval.sandbox.layers.probe_layers", list)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert main(["doctor", "--fix"]) == 0
    script = capsys.readouterr().out
    monkeypatch.undo()
    subprocess.run(["sh", "-n"], input=script, text=True, check=True)
    assert script.startswith("# ")
