"""Places of submission files."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.tasks._task_utils.file_utils import generate_submission_file, shared_model_name
from tests.cases import for_each


@for_each("wrap", [lambda out: Namespace(output_path=out), lambda out: {"output_path": out}])
def test_below_the_output_path(tmp_path: Path, wrap: Any) -> None:
    found = Path(generate_submission_file("a.json", wrap(str(tmp_path / "out"))))
    assert found == tmp_path / "out" / "submissions" / "a.json"
    assert found.parent.is_dir() and not found.exists()


@for_each("args", [None, {}, Namespace(output_path=None)])
def test_without_an_output_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert generate_submission_file("a.json", args, subpath="sent") == str(tmp_path / "sent" / "a.json")


@for_each(
    ("arguments", "name"),
    [
        ("pretrained=me/toy,dtype=auto", "me/toy"),
        ("pretrained=/home/me/models/toy", "toy"),
        ("pretrained=../models/toy/", "toy"),
        ("pretrained=~/toy", "toy"),
        ("model=gpt,api_key=sk-secret,base_url=http://host/v1", "gpt"),
        ("", "hf"),
    ],
)
def test_a_file_that_is_passed_on_names_no_place(arguments: str, name: str) -> None:
    assert shared_model_name(Namespace(model="hf", model_args=arguments)) == name
