"""Imports of packages by code of lm-eval's packs that get a module of this package instead."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lmms_eval.checks.findings import finding
from lmms_eval.errors import TaskError
from lmms_eval.tasks.yaml import included
from lmms_eval.tasks.yaml.functions import FunctionRef
from lmms_eval.tasks.yaml.included import include
from tests.cases import for_each


@pytest.fixture(autouse=True)
def _no_other_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(included._FINDER, "roots", [])


def tasks_below(path: Path, name: str) -> Path:
    """A folder of task files of lm-eval."""
    folder = path / name / "lm_eval" / "tasks"
    folder.mkdir(parents=True)
    include(folder, is_deep=False, package="lm_eval")
    return folder


def value_of(folder: Path, code: str) -> object:
    (folder / "utils.py").write_text(code, encoding="utf-8")
    return FunctionRef("utils.VALUE", str(folder / "probe.yaml")).resolve("a key")


SQUAD = "transformers.data.metrics"
CODE = {
    "evaluate": ("import evaluate as hf\nVALUE = hf.load('bleu').name", "bleu"),
    "a_name_of_evaluate": ("from evaluate import load\nVALUE = load('f1', keep_in_memory=True).name", "f1"),
    "fuzzywuzzy": ("from fuzzywuzzy import fuzz\nVALUE = fuzz.ratio('ab', 'ab')", 100),
    "squad": (f"import {SQUAD}.squad_metrics as s\nVALUE = s.compute_exact('A b', 'b')", 1),
    "squad_by_its_package": (f"from {SQUAD} import squad_metrics as s\nVALUE = s.get_tokens('A b')", ["b"]),
    "squad_in_full": (
        f"import {SQUAD}.squad_metrics\nVALUE = {SQUAD}.squad_metrics.normalize_answer('The  B!')",
        "b",
    ),
}


@for_each("name", sorted(CODE))
def test_what_an_import_gets(name: str, tmp_path: Path) -> None:
    code, value = CODE[name]
    assert value_of(tasks_below(tmp_path, name), code) == value


def test_the_names_of_the_package_remain(tmp_path: Path) -> None:
    assert (
        value_of(tasks_below(tmp_path, "own"), "import transformers\nVALUE = transformers.__name__") == "transformers"
    )
    assert "evaluate" not in sys.modules or "lmms_eval" not in str(sys.modules["evaluate"])


@for_each(
    ("code", "kind", "cause"),
    [
        ("from evaluate import load\nload('bleurt')", "package missing", "bleurt: evaluate.load"),
        ("import evaluate, lm_eval.utils\nimport no_such_package", "package missing", "no_such_package: pip install"),
        ("from fuzzywuzzy import process", "name not in this version", "lmms_eval.compat.lm_eval.fuzzywuzzy.process"),
    ],
)
def test_what_is_not_here(code: str, kind: str, cause: str, tmp_path: Path) -> None:
    with pytest.raises(TaskError) as raised:
        value_of(tasks_below(tmp_path, cause.partition(":")[0]), code)
    found = finding("functions", raised.value)
    assert (found.kind, found.cause[: len(cause)]) == (kind, cause)
