from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lmms_eval.cli.commands import COMMANDS
from lmms_eval.cli.completion import command as index_module
from lmms_eval.cli.completion.command import lexed, suggest
from lmms_eval.cli.completion.gather import gathered_index
from lmms_eval.cli.main import main
from lmms_eval.config.options import options
from tests.cases import for_each
from tests.cli.test_main import HEAVY

BREAKS = " \t\n\"'@><=;|&(:"


@pytest.fixture(scope="module")
def index():
    return gathered_index()


def _values(line: str, index) -> list[str]:
    return suggest(lexed(f"lmms-eval {line}", BREAKS).words, index).values


def test_every_command_and_option_is_known(index) -> None:
    assert set(_values("", index)) == set(COMMANDS)
    assert {option.flag for option in options()} <= set(_values("--", index))
    assert "--judge_model" in _values("score RUN --judge_m", index)


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("--log_samples --no_log_samples", ["--no_log_samples"]),
        ("--log-samples-s", ["--log-samples-suffix"]),
        ("--order ", ["cost", "random"]),
        ("--order r", ["random"]),
        ("--ablate no-media,b", ["no-media,blank-media"]),
        ("--resume --lim", ["--limit"]),
        ("cache ", ["stats", "prune", "verify"]),
        ("cache prune --older", ["--older-than"]),
        ("completion ", ["bash", "zsh", "fish"]),
        ("tasks describe mmmu_val_pass", ["mmmu_val_pass64"]),
        ("fetch nlt", ["nltk"]),
        ("help judg", ["judges", "judge"]),
        ("cache prune --model ", []),
        ("--judge_model ", []),
        ("VERBOSITY=ERROR", []),
    ],
)
def test_values_by_place(line, values, index) -> None:
    assert _values(line, index) == values


def test_gathering_silences_no_log_but_its_own(index) -> None:
    assert index["tasks"]
    assert logging.root.manager.disable == logging.NOTSET


def test_tasks_are_not_named_twice(index) -> None:
    assert "mme,mme" not in _values("--tasks mme,mm", index)
    assert "mme,mmbench" in _values("--tasks mme,mm", index)


def test_arguments_of_the_model_that_is_named(index) -> None:
    assert "pretrained=" in _values("--model_args ", index)
    assert "num_concurrent=" in _values("--model async_openai --model_args ", index)
    assert "pretrained=" not in _values("--model async_openai --model_args ", index)
    assert suggest(["--model_args", "pretrained=./m"], index).kind == "files"
    assert [name for name, found in index["model_args"].items() if not found] == []


def test_names_that_a_terminal_would_obey_are_left_out(index) -> None:
    names = {**index, "tasks": ["q_a\nb", "q_a\tb", "q_\x1b[31m", "q_\u202e", "q_good"]}
    assert suggest(["--tasks", "q_"], names).values == ["q_good"]


@for_each(
    ("line", "typed"),
    [
        ("--tasks ", r"a\ \$b\'\"c"),
        ('--tasks "a', "a \\$b'\\\"c"),
        ("--tasks 'a", ""),
        ("--tasks=", r"a\ \$b\'\"c"),
    ],
)
def test_quotes_of_the_line_are_kept(line, typed) -> None:
    read = lexed(f"lmms-eval {line}", BREAKS)
    assert read.typed(read.words[-1][: read.kept] + "a $b'\"c") == typed


def _answer(cache: Path, code: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONPATH": str(Path(__file__).parents[3])}
    return subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=120)


def test_answers_come_from_the_file_and_import_next_to_nothing(tmp_path) -> None:
    heavy = (*HEAVY, "argparse", "dataclasses", "lmms_eval.config", "lmms_eval.tasks", "lmms_eval.models")
    code = (
        "import sys; from lmms_eval.cli.main import main; "
        "main(['completion', 'answer', 'zsh', '--tasks', 'mmmu_val_pass']);"
        f"print([name for name in {heavy} if name in sys.modules], file=sys.stderr)"
    )
    first, second = _answer(tmp_path, code), _answer(tmp_path, code)
    assert first.stdout == second.stdout == "words\t\nmmmu_val_pass64\tmmmu_val_pass64\n"
    assert "lmms_eval.tasks" in first.stderr
    assert second.stderr == "[]\n"


def test_the_file_is_made_anew_where_it_does_not_fit(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "tasks"
    folder.mkdir()
    body = "dataset_path: json\ndoc_to_text: q\ndoc_to_target: a\n"
    (folder / "a.yaml").write_text(f"task: first\n{body}")
    assert index_module.more_tasks(str(folder)) == ["first"]
    (kept,) = (tmp_path / "lmms_eval" / "completion").iterdir()
    (folder / "b.yaml").write_text(f"task: second\n{body}")
    assert index_module.more_tasks(str(folder)) == ["first", "second"]
    kept.write_text(json.dumps({"state": []}))
    assert index_module.more_tasks(str(folder)) == ["first", "second"]
    kept.write_text("no JSON")
    assert index_module.more_tasks(str(folder)) == ["first", "second"]


def test_a_cache_that_cannot_be_written_costs_time_only(tmp_path, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert index_module.more_tasks(str(tmp_path)) == []
    assert (tmp_path / "file").read_text() == ""


def test_secrets_that_were_typed_stay_as_they_are(tmp_path) -> None:
    typed = "api_key=sk-0123456789abcdef0123,num_conc"
    words = ["completion", "answer", "zsh", "--model", "openai", "--model_args", typed]
    done = _answer(tmp_path, f"from lmms_eval.cli.main import main; main({words!r})")
    assert f"{typed}urrent=" in done.stdout


def test_an_answer_to_nothing_is_a_usage_error(capsys) -> None:
    assert main(["completion", "answer"]) == 2
    assert "invalid choice: 'answer'" in capsys.readouterr().err
