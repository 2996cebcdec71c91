from __future__ import annotations

from lmms_eval.cli.commands import COMMANDS
from lmms_eval.cli.help import EXAMPLES, FIRST_RUN, NEXT_STEPS
from lmms_eval.cli.main import main
from lmms_eval.config import build_config, check_config, parse_flags
from lmms_eval.models.registry import ModelRegistry
from lmms_eval.tasks.catalogue import Catalogue
from tests.cases import for_each


@for_each("example", EXAMPLES, ids=lambda example: example.purpose)
def test_examples_are_right_command_lines(example) -> None:
    config = build_config(parse_flags(example.words), {})
    check_config(config)
    assert config.model in {model.model_id for model in ModelRegistry().list_models()}
    assert Catalogue().match(config.names("tasks"))


@for_each("example", NEXT_STEPS, ids=lambda example: example.purpose)
def test_next_steps_are_commands(example) -> None:
    assert example.words[0] in COMMANDS


def test_the_first_run_needs_nothing(capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)  # where it writes the benchmark's submission
    assert main([*FIRST_RUN.words, "--limit", "1"]) == 0
    assert "megabench_demo" in capsys.readouterr().out
