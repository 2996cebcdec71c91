from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lmms_eval.results.document import GitState, git_state, machine, versions
from lmms_eval.utils import installed
from lmms_eval.utils.installed import package_version


def test_versions_are_those_installed_and_nothing_is_imported() -> None:
    code = (
        "import sys; from lmms_eval.results.document import machine, versions; versions(); machine(); "
        "sys.exit(any(name in sys.modules for name in ('torch', 'numpy', 'transformers', 'datasets')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    found = versions()
    assert found["python"] == platform.python_version()
    assert found["nltk"] == package_version("nltk")
    assert found["numpy"] == package_version("numpy") is not None
    assert package_version("no-such-package-anywhere") is None


def test_the_machine() -> None:
    facts = machine()
    assert facts["cpus"] == os.cpu_count() and facts["host"]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package in a folder of its own, found where the real one would be."""
    monkeypatch.setattr(installed, "__file__", str(tmp_path / "lmms_eval" / "utils" / "installed.py"))
    git_state.cache_clear()
    yield tmp_path
    git_state.cache_clear()


def test_commit_and_branch_of_the_own_checkout(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("git") is None:
        pytest.skip("needs git")
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
    for words in (["init", "-q", "-b", "trunk"], [*identity, "commit", "-q", "--allow-empty", "-m", "one"]):
        subprocess.run(["git", "-C", str(checkout), *words], check=True)
    elsewhere = checkout / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    state = git_state()
    assert state.branch == "trunk"
    assert state.commit is not None and len(state.commit) == 40


def test_outside_a_checkout_nothing_is_claimed(checkout: Path) -> None:
    assert git_state() == GitState(None, None)


def test_without_git_nothing_is_claimed(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (checkout / ".git").mkdir()
    monkeypatch.setenv("PATH", str(checkout))
    assert git_state() == GitState(None, None)
