from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.utils.signatures import place_of

CODE = """import json

def outer(text):
    return inner(text)

def inner(text):
    return json.loads(text)

def fine():
    return 1
"""


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Any]:
    path = tmp_path / "their_utils.py"
    path.write_text(CODE)
    spec = importlib.util.spec_from_file_location("their_utils_of_places", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def raised(function: Callable[..., Any], *args: Any) -> BaseException:
    with pytest.raises(Exception) as caught:
        function(*args)
    return caught.value


def test_the_innermost_frame_of_the_own_files_counts(own: Any, tmp_path: Path) -> None:
    error = raised(own.outer, "{")
    assert isinstance(error, json.JSONDecodeError)  # raised further down, in the standard library
    assert place_of(error, own.outer) == f"{tmp_path}/their_utils.py:7"


def test_a_call_that_does_not_fit_is_where_the_function_is_defined(own: Any, tmp_path: Path) -> None:
    assert place_of(raised(own.fine, 1), own.fine) == f"{tmp_path}/their_utils.py:9"


def test_packages_installed_below_the_folder_are_not_own_files(own: Any, tmp_path: Path) -> None:
    package = tmp_path / ".venv" / "lib" / "site-packages"
    package.mkdir(parents=True)
    (package / "theirs.py").write_text("def fail():\n    raise KeyError('deep')\n")
    spec = importlib.util.spec_from_file_location("theirs_of_places", package / "theirs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    own.json = type("Fake", (), {"loads": staticmethod(lambda _text: module.fail())})
    assert place_of(raised(own.outer, "{"), own.outer) == f"{tmp_path}/their_utils.py:7"


def test_a_function_without_a_file_has_no_place() -> None:
    assert place_of(ValueError("x"), len) == ""
