from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from lmms_eval.cli.commands import COMMANDS
from lmms_eval.cli.help import EXAMPLES, NEXT_STEPS, flag_text
from lmms_eval.cli.main import main
from lmms_eval.config.options import options
from tests.cases import for_each

ROOT = Path(__file__).parents[2]
HEAVY = (
    "torch", "transformers", "datasets", "pandas", "aiohttp", "pyarrow", "numpy", "matplotlib", "sympy", "openai",
    "pydantic", "loguru", "yaml", "PIL", "av",
)  # fmt: skip


def _process(command: list[str]) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    return subprocess.run(command, capture_output=True, text=True, env=environ, timeout=60)


def test_no_arguments_print_the_box(capsys) -> None:
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == lines[-1] == "+" + "-" * (len(lines[0]) - 2) + "+"
    assert len({len(line) for line in lines}) == 1
    for name in COMMANDS:
        assert any(line.startswith(f"|   {name} ") for line in lines), name


def test_an_evaluation_without_flags_tells_how_to_begin_and_fails(capsys) -> None:
    assert main(["eval"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("error: eval: name a model with --model and tasks with --tasks\n")
    assert all(f"\n  {example.line}\n" in told.err for example in (*EXAMPLES, *NEXT_STEPS))


@for_each("word", ["--help", "-h"])
def test_help_lists_commands_and_all_flags(word, capsys) -> None:
    assert main([word]) == 0
    text = capsys.readouterr().out
    for name in COMMANDS:
        assert f"\n  {name} " in text
    for option in options():
        assert flag_text(option) in text, option.name
    assert "143" in text


@for_each("arguments", [["eval", "--help"], ["eval", "-h"], ["--model", "x", "--help"]])
def test_help_of_an_evaluation(arguments, capsys) -> None:
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert text.startswith("usage: lmms-eval [eval] --model NAME")
    assert all(flag_text(option) in text for option in options())


@for_each(
    ("arguments", "message"),
    [
        (["taks"], "unknown command 'taks'; did you mean tasks?"),
        (["zzz"], "unknown command 'zzz'; commands: eval, tasks"),
        (
            ["models", "--alias"],
            "unrecognized arguments: --alias; did you mean --aliases?; see lmms-eval models --help",
        ),
        (["models", "--zzzz=1"], "lmms-eval models: unrecognized arguments: --zzzz=1; see lmms-eval models --help"),
        (["version", "x"], "unrecognized arguments: x"),
        (["doctor", "--all"], "unrecognized arguments: --all"),
    ],
)
def test_wrong_commands(arguments, message, capsys) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.strip().splitlines()) == 1


def test_help_of_a_subcommand(capsys) -> None:
    assert main(["models", "--help"]) == 0
    assert "--aliases" in capsys.readouterr().out


@for_each("arguments", [[], ["--help"], ["eval", "--help"], ["version"]])
def test_quick_commands_import_nothing_heavy(arguments) -> None:
    code = (
        "import sys; from lmms_eval.cli.main import main; code = main(sys.argv[1:]); "
        f"heavy = [name for name in {HEAVY} if name in sys.modules]; sys.exit(f'loaded: {{heavy}}' if heavy else code)"
    )
    done = _process([sys.executable, "-c", code, *arguments])
    assert (done.returncode, done.stderr) == (0, "")


def test_a_closed_pipe_is_quiet() -> None:
    command = f"set -o pipefail; '{sys.executable}' -m lmms_eval --help | true"
    done = _process(["bash", "-c", command])
    assert (done.returncode, done.stderr) == (0, "")


def test_the_module_runs_and_passes_its_code_on() -> None:
    command = [sys.executable, "-m", "lmms_eval"]
    assert _process([*command, "version"]).returncode == 0
    done = _process([*command, "--tasks", "t", "--limit", "0"])
    assert done.returncode == 2
    assert done.stderr.startswith("error: --limit")


def test_importing_the_package_leaves_loguru_alone() -> None:
    code = (
        "from loguru import logger; before = dict(logger._core.handlers); import lmms_eval, lmms_eval.cli.evaluate, "
        "lmms_eval.config, lmms_eval.utils.logging; assert logger._core.handlers == before and before"
    )
    done = _process([sys.executable, "-c", code])
    assert (done.returncode, done.stderr) == (0, "")


@for_each("command", COMMANDS.values())
def test_each_command_has_its_module(command, capsys) -> None:
    assert main([command.name, "--help"]) == 0
    assert "usage: lmms-eval" in capsys.readouterr().out


def test_no_module_of_the_command_line_imports_main() -> None:
    """``main`` finds commands by the table, so that no module needs it."""
    names = [path for path in (ROOT / "lmms_eval" / "cli").glob("*.py") if "lmms_eval.cli.main" in path.read_text()]
    assert names == []


def test_a_user_without_a_home_folder_is_told_to_name_one(monkeypatch, capsys):
    def unknown(uid: int):
        raise KeyError(uid)

    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", unknown)
    assert main(["doctor"]) == 2
    assert "set HOME to a folder" in capsys.readouterr().err
    assert main(["--version"]) == 0


LAUNCHER = """
import argparse
import sys

import lmms_eval.__main__ as command

sys.argv = ["launcher", "--model", "baseline", "--model_args", "strategy=gold", "--tasks", "megabench_demo"]
parser, options = command.parse_eval_args()
assert isinstance(parser, argparse.ArgumentParser) and options.limit is None and options.tasks == "megabench_demo"
options.output_path, options.limit = sys.argv.pop() and FOLDER, 2
assert command.cli_evaluate(options) is None
command.parse_eval_args = lambda: (parser, argparse.Namespace(**{**vars(options), "limit": 3, "output_path": None}))
command.cli_evaluate()
options.tasks = "no_such_task"
command.cli_evaluate(options)
"""


def test_a_launcher_reads_patches_and_runs_the_options(tmp_path: Path) -> None:
    code = LAUNCHER.replace("sys.argv.pop() and FOLDER", repr(str(tmp_path / "out")))
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=env, cwd=tmp_path
    )
    assert done.returncode == 2, done.stderr
    assert "unknown task 'no_such_task'" in done.stderr
    assert "limit: 2.0" in done.stdout and "limit: 3.0" in done.stdout
    assert list((tmp_path / "out").glob("*_results.json"))
