from __future__ import annotations

import pytest

from lmms_eval.cli.main import main
from lmms_eval.cli.models import model_lines
from tests.parity.vectors import GOLDEN_DIR

PLUGIN = GOLDEN_DIR / "harness" / "inputs" / "plugin"
needs_plugin = pytest.mark.skipif(not PLUGIN.is_dir(), reason=f"no recorded plugin at {PLUGIN}")


def _rows(lines: list[str]) -> list[tuple[str, str, str]]:
    return [(line[:28].strip(), line[28:42].strip(), line[42:].strip()) for line in lines[4:-2]]


def test_the_list(capsys) -> None:
    assert main(["models", "--aliases"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = _rows(lines)
    assert lines[0] == f"Registered Models ({len(rows)} total)"
    assert lines[1] == ""
    assert lines[2] == f"{'Name':<28}{'Type':<14}Aliases"
    assert ("hf", "chat", "async_hf, async_hf_model, huggingface") in rows
    kinds = [kind for _, kind, _ in rows]
    assert kinds == sorted(kinds, key=["chat", "chat+simple", "simple"].index)
    assert lines[-1] == ", ".join(f"{kind}: {kinds.count(kind)}" for kind in ("chat", "chat+simple", "simple"))


def test_aliases_only_when_asked(capsys) -> None:
    assert main(["models"]) == 0
    text = capsys.readouterr().out
    assert "huggingface" not in text
    assert "Aliases" not in text


@needs_plugin
def test_models_of_a_plugin_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PLUGIN))
    monkeypatch.setenv("LMMS_EVAL_PLUGINS", "golden_plugin")
    assert "scripted_simple" in [name for name, _, _ in _rows(model_lines(False))]
