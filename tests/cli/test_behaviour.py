"""The recorded behaviour of the command line (``wanted`` column), each record in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.cli.help import flag_text
from lmms_eval.config.options import options
from tests import forks
from tests.cases import for_each
from tests.parity.vectors import GOLDEN_DIR

ROOT = Path(__file__).parents[2]
RECORDS = GOLDEN_DIR / "harness" / "cli_behaviour.jsonl"
INPUTS = GOLDEN_DIR / "harness" / "inputs"
pytestmark = pytest.mark.skipif(not RECORDS.is_file(), reason=f"no recorded behaviour at {RECORDS}")
Done = subprocess.CompletedProcess[str]


def _run(*arguments: str, **variables: str) -> Done:
    environ = {
        **os.environ,
        **variables,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(INPUTS / "plugin"), os.environ.get("PYTHONPATH", "")]),
        "VERBOSITY": "INFO",
    }
    return forks.run("-m", "lmms_eval", *arguments, env=environ)


def _box(done: Done) -> None:
    lines = done.stdout.splitlines()
    assert lines[0] == lines[-1]
    for name in ("eval", "tasks", "models", "ui", "serve", "mcp", "power", "version"):
        assert re.search(rf"^\| +{name} ", done.stdout, re.MULTILINE), name
    assert done.stderr == ""


def _all_flags(done: Done) -> None:
    assert all(flag_text(option) in done.stdout for option in options())
    assert done.stderr == ""


def _plain_names(done: Done) -> None:
    names = [line.removeprefix(" - ") for line in done.stdout.splitlines()]
    assert names == sorted(names)
    assert "megabench" in names
    assert all(line.startswith(" - ") for line in done.stdout.splitlines())
    assert done.stderr == ""
    assert _run("--tasks", "list", "--verbosity", "WARNING").stdout == done.stdout


def _available(done: Done) -> None:
    head, blank, *names = done.stdout.splitlines()
    assert head == f"Available tasks ({len(names)}):"
    assert blank == ""
    assert all(re.fullmatch(r"  \S+", name) for name in names)
    assert names == sorted(names)
    assert done.stderr == ""


def _models(done: Done) -> None:
    lines = done.stdout.splitlines()
    assert re.fullmatch(r"Registered Models \(\d+ total\)", lines[0])
    assert lines[2] == f"{'Name':<28}{'Type':<14}Aliases"


def _usage(message: str) -> Callable[[Done], None]:
    def check(done: Done) -> None:
        assert message in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
        assert done.stdout == ""

    return check


def _traceback(done: Done) -> None:
    assert "Traceback" in done.stderr
    assert "error: unknown model 'nope'" in done.stderr.splitlines()[-1]


BY_ARGUMENTS: dict[tuple[str, ...], tuple[int, Callable[[Done], None]]] = {
    (): (0, _box),
    ("--help",): (0, _all_flags),
    ("eval", "--help"): (0, _all_flags),
    ("--tasks", "list"): (0, _plain_names),
    ("tasks", "list"): (0, _available),
    ("models", "--aliases"): (0, _models),
    ("--model", "scripted", "--tasks", "gold_short", "--log_samples"): (2, _usage("--output_path")),
    ("--model", "scripted", "--tasks", "gold_short", "--seed", "1,2"): (2, _usage("--seed: ")),
}
WITH_EVALUATOR: dict[tuple[str, ...], Callable[[Done], None]] = {
    ("--model", "scripted", "--tasks", "not_a_task"): _usage("unknown task 'not_a_task'"),
    ("--model", "nope", "--tasks", "gold_short"): _usage("unknown model 'nope'; did you mean "),
    ("--model", "nope", "--tasks", "gold_short", "--verbosity", "DEBUG"): _traceback,
    ("--tasks", "gold_short"): _usage("pretrained"),
}
PLUGIN_RUN = ("--model", "scripted_simple", "--tasks", "plug_task")
CONFIGS = {
    "env: {MY_HOME: '${NOPE_VAR:-/default/place}', MY_API_KEY: abcdefghijkl}": "test_file",
    'seed: "42,42,42,42"': "test_resolve",
    "{modle: scripted}": "test_resolve",
    "{limit: 4}, argv: --offset 0": "test_resolve",
}
"""Files of configuration: the test module of ``tests/config`` that holds the wanted behaviour."""


@for_each("arguments", list(BY_ARGUMENTS), ids=" ".join)
def test_wanted(arguments: tuple[str, ...]) -> None:
    code, check = BY_ARGUMENTS[arguments]
    done = _run(*arguments)
    assert done.returncode == code, done.stderr
    check(done)


@pytest.mark.parametrize("arguments", list(WITH_EVALUATOR), ids=" ".join)
def test_wanted_of_runs_that_cannot_start(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = _run(*arguments, "--include_path", str(INPUTS / "tasks"), XDG_STATE_HOME=str(tmp_path))
    assert done.returncode == 2
    WITH_EVALUATOR[arguments](done)


def test_close_task_names_are_named() -> None:
    done = _run("--model", "scripted", "--tasks", "gold_shrot", "--include_path", str(INPUTS / "tasks"))
    assert done.returncode == 2
    assert "unknown task 'gold_shrot'; did you mean gold_short" in done.stderr


def test_tasks_of_a_plugin_package_are_found(tmp_path: Path) -> None:
    done = _run(*PLUGIN_RUN, LMMS_EVAL_PLUGINS="golden_plugin", XDG_STATE_HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "|plug_task|" in done.stdout


def test_an_unknown_key_of_a_file_ends_with_2(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("{modle: scripted}\n")
    done = _run("--config", str(path))
    assert done.returncode == 2
    assert "unknown key 'modle' (did you mean model?)" in done.stderr
    assert "Valid keys: config, model, tasks, model_args" in done.stderr


def test_every_record_is_taken_care_of() -> None:
    records: list[dict[str, Any]] = [json.loads(line) for line in RECORDS.read_text().splitlines()]
    known = {*BY_ARGUMENTS, *WITH_EVALUATOR, PLUGIN_RUN}
    assert {tuple(record["argv"]) for record in records if "argv" in record} == known
    assert {record["config"] for record in records if "config" in record} == set(CONFIGS)
