from __future__ import annotations

import sys

import pytest

from lmms_eval.cli.arguments import plugins_of_environment
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
    assert "scripted_simple" in [name for name, _, _ in _rows(model_lines(False, plugins_of_environment()))]


def test_a_model_of_the_current_folder_is_listed_and_checked(tmp_path, monkeypatch, capsys):
    (tmp_path / "p32_listed.py").write_text(
        "from lmms_eval.api import Model, Response, register_model\n\n\n"
        '@register_model("p32_listed")\n'
        "class Listed(Model):\n"
        "    def respond(self, stream):\n"
        "        while requests := stream.take(8):\n"
        '            yield from (Response(one.id, text="x", finish_reason="stop") for one in requests)\n'
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert main(["models", "--plugins", "."]) == 0
    assert "p32_listed" in capsys.readouterr().out
    assert main(["check", "--model", "p32_listed", "--plugins", "p32_listed.py"]) == 0
    assert "1 model checked: OK" in capsys.readouterr().out
    assert main(["models", "--plugins", "./absent.py"]) == 2
    assert "there is no such file or folder" in capsys.readouterr().err
