from __future__ import annotations

import ast
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import lmms_eval.api
import lmms_eval.config
import lmms_eval.judges
import lmms_eval.media
import lmms_eval.tasks
import lmms_eval.utils
from lmms_eval.utils.lazy import import_ahead
from tests.cases import for_each

PACKAGES = (lmms_eval.api, lmms_eval.config, lmms_eval.judges, lmms_eval.media, lmms_eval.tasks, lmms_eval.utils)


def stubbed(package: object) -> set[str]:
    """Names that type checkers see."""
    tree = ast.parse(Path(str(package.__file__)).with_suffix(".pyi").read_text("utf-8"))
    return {alias.asname for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}


@for_each("package", PACKAGES)
def test_every_name_of_the_stub_is_there(package) -> None:
    names = stubbed(package)
    assert names and set(package.__all__) == names and names <= set(dir(package))
    for name in names:
        assert getattr(package, name) is not None
        assert name in vars(package)  # looked up once


@for_each("package", PACKAGES)
def test_other_names_are_absent(package) -> None:
    for name in ("none_such", "__wrapped__"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
            getattr(package, name)


def test_a_name_loads_its_own_module_alone() -> None:
    code = (
        "import sys; from lmms_eval.utils import chunks; "
        "assert 'lmms_eval.compat.helpers' in sys.modules and 'lmms_eval.utils.template' not in sys.modules; "
        "namespace = {}; exec('from lmms_eval.utils import *', namespace); assert 'make_table' in namespace"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_module_is_imported_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "needed_later.py").write_text("import threading\nTHREAD = threading.current_thread().name\n")
    (tmp_path / "broken_later.py").write_text("import no_such_module_here\n")
    for name in ("needed_later", "broken_later", "sys"):
        import_ahead(name)
    for thread in threading.enumerate():
        if thread.name.startswith("import "):
            thread.join()
    assert sys.modules["needed_later"].THREAD == "import needed_later"
    with pytest.raises(ModuleNotFoundError, match="no_such_module_here"):  # where it is needed
        __import__("broken_later")
    del sys.modules["needed_later"]
