"""The command that continues a run."""

from __future__ import annotations

import sys

import pytest

from lmms_eval.config.options import options
from lmms_eval.evaluation.inputs import this_command
from tests.cases import for_each

VARIABLES = {name for one in options() for name in one.variables if name.startswith("LMMS_EVAL_")}


@for_each(
    ("words", "variables", "shown"),
    [
        ("--model a --tasks b", {"PYTHONPATH": "src"}, "lmms-eval --model a --tasks b"),
        ("--model a --plugins b", {"PYTHONPATH": "."}, "PYTHONPATH=. lmms-eval --model a --plugins b"),
        ("--include_path=my", {"PYTHONPATH": "my code:b"}, "PYTHONPATH='my code:b' lmms-eval --include_path=my"),
        ("--plugins b", {"PYTHONPATH": ""}, "lmms-eval --plugins b"),
        (
            "--model a",
            {"PYTHONPATH": ".", "LMMS_EVAL_PLUGINS": "mine", "LMMS_EVAL_MEDIA_ROOT": "/data"},
            "PYTHONPATH=. LMMS_EVAL_MEDIA_ROOT=/data LMMS_EVAL_PLUGINS=mine lmms-eval --model a",
        ),
        ("--model a", {"LMMS_EVAL_GIT_BRANCH": "main", "HF_HOME": "/hub"}, "lmms-eval --model a"),
    ],
)
def test_the_command_keeps_the_variables_that_it_needs(
    words: str, variables: dict[str, str], shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*VARIABLES, "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["lmms-eval", *words.split()])
    assert this_command() == shown


def test_a_secret_in_a_variable_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMMS_EVAL_GEOCODER", "https://user:very-secret-1234@host/x?key=abcdefghijk")
    monkeypatch.setattr(sys, "argv", ["lmms-eval", "--model", "a"])
    assert "very-secret" not in this_command() and "abcdefghijk" not in this_command()
