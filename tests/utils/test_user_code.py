"""Frames of an error in the user's code."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import FunctionError, ModelError
from lmms_eval.tasks.yaml.functions import named
from lmms_eval.utils.user_code import MOST_FRAMES, frame_lines, user_frames, user_place

MODULE = """\
import json
from lmms_eval.errors import ModelError
def read(text):
    return json.loads(text)
def deep(depth):
    return 1 / 0 if depth == 0 else deep(depth - 1)
def refuse(text):
    raise ModelError(text)
"""


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module of the user."""
    (tmp_path / "p32_users.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield importlib.import_module("p32_users")
    del sys.modules["p32_users"]


def _raised(function: Callable[..., Any], *arguments: Any) -> Exception:
    """Return the error of a function that the package calls."""
    with pytest.raises(Exception) as caught:
        named(function, "doc_to_text")(*arguments)
    return caught.value


def test_the_frames_are_those_of_the_cause_in_the_users_files(code: Any) -> None:
    error = _raised(code.read, "{")
    assert isinstance(error, FunctionError)
    assert [(frame.name, frame.line) for frame in user_frames(error)] == [("read", "return json.loads(text)")]
    assert frame_lines(user_frames(error)) == ["  p32_users.py:4, in read:  return json.loads(text)"]
    assert user_place(error) == " (p32_users.py:4)"


def test_the_innermost_frames_are_shown(code: Any) -> None:
    lines = frame_lines(user_frames(_raised(code.deep, 30)))
    assert len(lines) == MOST_FRAMES and all("in deep:" in line for line in lines)


def test_a_refusal_needs_no_frames(code: Any) -> None:
    error = _raised(code.refuse, "give a path")
    assert isinstance(error, ModelError)
    assert user_frames(error) == [] and user_place(error) == ""


def test_an_error_of_the_package_has_no_frames() -> None:
    assert user_frames(_raised(int, "eight")) == []
    with pytest.raises(ZeroDivisionError) as caught:  # this file has called nothing
        _ = 1 / 0
    assert user_frames(caught.value) == []


def test_a_file_that_is_no_python_has_the_line_of_its_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "p32_mistyped.py").write_text("def respond(self, stream)\n    pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    lines = frame_lines(user_frames(_raised(importlib.import_module, "p32_mistyped")))
    assert lines == ["  p32_mistyped.py:1, in <module>:  def respond(self, stream)"]
