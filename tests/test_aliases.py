"""The modules at the family's paths, which have no files."""

from __future__ import annotations

import csv
import importlib
import importlib.util
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import lmms_eval
from lmms_eval.aliases import find_alias
from tests.cases import for_each

ROOT = Path(lmms_eval.__file__).parent
with (ROOT / "compat" / "aliases.tsv").open(encoding="utf-8", newline="") as file:
    ROWS = list(csv.DictReader(file, delimiter="\t"))
PATHS = sorted({f"lmms_eval.{row['path']}" for row in ROWS})


def names_at(path: str) -> set[str]:
    rows = (row for row in ROWS if f"lmms_eval.{row['path']}" == path)
    return {entry.partition("=")[0] for row in rows for entry in row["names"].split()}


@for_each("path", PATHS)
def test_every_name_of_the_table_is_there(path: str) -> None:
    module, names = importlib.import_module(path), names_at(path)
    assert names <= set(dir(module)) and set(module.__all__) == {name for name in names if name[0] != "_"}
    for name in names:
        assert getattr(module, name) is not None
        assert name in vars(module)  # looked up once


@for_each("path", PATHS)
def test_other_names_are_absent(path: str) -> None:
    module = importlib.import_module(path)
    for name in ("none_such", "__wrapped__"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
            getattr(module, name)


def test_no_path_has_a_file_of_the_package() -> None:
    assert len(PATHS) > 50
    places = [ROOT.joinpath(*path.split(".")[1:]) for path in PATHS]
    assert [place for place in places if place.with_suffix(".py").exists() or (place / "__init__.py").exists()] == []


@for_each("package", [path for path in PATHS if any(one.startswith(f"{path}.") for one in PATHS)])
def test_a_package_lists_its_modules(package: str) -> None:
    module = importlib.import_module(package)
    importlib.invalidate_caches()
    listed = {item.name for item in pkgutil.iter_modules(module.__path__, f"{package}.")}
    assert listed == {path for path in PATHS if path.startswith(f"{package}.")}


def test_specifications_and_errors_are_those_of_modules_with_files() -> None:
    assert importlib.util.find_spec("lmms_eval.verifiers").submodule_search_locations
    assert importlib.util.find_spec("lmms_eval.verifiers.rule").submodule_search_locations is None
    assert importlib.util.find_spec("lmms_eval.verifiers.none_such") is None
    assert find_alias("imports") is find_alias("lmms_eval") is find_alias("lmms_eval.models") is None
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'lmms_eval.verifiers.none_such'$"):
        importlib.import_module("lmms_eval.verifiers.none_such")
    with pytest.raises(ImportError, match=r"cannot import name 'none_such' from 'lmms_eval.verifiers'"):
        exec("from lmms_eval.verifiers import none_such")


def test_nothing_is_loaded_before_it_is_used(tmp_path: Path) -> None:
    code = (
        "import sys, lmms_eval; assert not [name for name in sys.modules if name.startswith('lmms_eval.')"
        " and name != 'lmms_eval.aliases']; "
        "import lmms_eval.verifiers.rule; "
        "assert not any(name.startswith('lmms_eval.compat') for name in sys.modules); "
        "from lmms_eval.verifiers import *; "
        "assert VerifyResult is lmms_eval.verifiers.VerifyResult; "
        "assert 'lmms_eval.compat.verifiers' in sys.modules; "
        "from lmms_eval.models.registry_v2 import ModelRegistry, ModelRegistryV2; "
        "assert ModelRegistryV2 is ModelRegistry"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_included_tree_does_not_replace_them(tmp_path: Path) -> None:
    for name in ("asr_wer_utils", "_task_utils/mcq_extract"):
        path = tmp_path / "lmms_eval/tasks" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("raise RuntimeError('the file of the tree')\n")
    code = (
        "import pathlib, sys; from lmms_eval.tasks.yaml.included import include; include(pathlib.Path(sys.argv[1])); "
        "from lmms_eval.tasks.asr_wer_utils import compute_wer; "
        "from lmms_eval.tasks._task_utils.mcq_extract import extract_mcq_answer"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
