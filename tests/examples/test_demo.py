"""What the demonstration names as the next steps."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from examples.demo import next_steps


def test_the_environment_is_activated_first_unless_it_is_active(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / ".venv"
    (own / "bin").mkdir(parents=True)
    (own / "bin" / "lmms-eval").touch(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "prefix", str(own))
    monkeypatch.setenv("PATH", "/nowhere")
    commands = [line.partition("#")[0].strip() for line in next_steps(Path("demo_outputs"))]
    assert commands == ["Next:", "source .venv/bin/activate", "lmms-eval report demo_outputs", "lmms-eval ui"]
    monkeypatch.setenv("PATH", str(own / "bin"))
    assert not [line for line in next_steps(Path("demo_outputs")) if "activate" in line]
    monkeypatch.setenv("PATH", "/nowhere")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert f"source {own}/bin/activate" in next_steps(Path("my outputs"))[1]
    assert "lmms-eval report 'my outputs'" in next_steps(Path("my outputs"))[2]
