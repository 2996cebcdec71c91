from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from lmms_eval.utils.installed import absent_name, error_text
from tests.cases import for_each


@for_each(
    ("code", "name"),
    [
        ("import lmms_eval.no_such.deeper", "lmms_eval.no_such"),
        ("from lmms_eval.utils import no_such", "lmms_eval.utils.no_such"),
        ("from lmms_eval import no_such", "lmms_eval.no_such"),
        ("import no_such_package", None),
        ("from os import no_such", None),
        ("raise ImportError('no library', name='lmms_eval.utils')", None),
        ("raise ValueError('lmms_eval')", None),
    ],
)
def test_absent_names_of_this_package(
    code: str, name: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "asking_for_names.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    with pytest.raises((ImportError, ValueError)) as caught:
        importlib.import_module("asking_for_names")
    assert "asking_for_names" not in sys.modules
    assert absent_name(caught.value) == name
    said = error_text(caught.value)
    if name is None:
        assert said == f"{type(caught.value).__name__}: {caught.value}"
    else:
        assert said.startswith(f"{type(caught.value).__name__}: {name} is not part of this version of lmms_eval (")
        assert "lmms-eval 0.7.x" in said and "pip install" not in said


def test_an_own_module_below_an_include_folder_is_not_ours(tmp_path: Path) -> None:
    error = ImportError("cannot import name 'f' from 'lmms_eval.tasks.mine' (mine.py)", name="lmms_eval.tasks.mine")
    error.path = str(tmp_path / "mine.py")
    assert absent_name(error) is None
    assert absent_name(ModuleNotFoundError("no", name="lmms_eval.tasks.mine")) == "lmms_eval.tasks.mine"
    assert "--include_path" in error_text(ModuleNotFoundError("no", name="lmms_eval.tasks.mine"))
