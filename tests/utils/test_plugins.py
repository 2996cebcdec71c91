"""Plugins by name and by path."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lmms_eval.errors import ModelError
from lmms_eval.utils.plugins import absolute_plugins, is_path, plugin_names, plugin_task_folders
from tests.cases import for_each

MODEL = '@register_model("parrot")\nclass Parrot: ...\n'


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [part for part in sys.path if part])


@for_each(
    ("word", "is_one"),
    [(".", True), ("a.py", True), ("a/b", True), ("~/a", True), ("a", False), ("a.b", False), ("folder", True)],
)
def test_a_path_is_told_from_a_name(word: str, is_one: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir(exist_ok=True)
    assert is_path(word) is is_one


def test_a_folder_is_its_files_that_register_a_model(tmp_path: Path) -> None:
    (tmp_path / "p32_parrot.py").write_text(MODEL)
    (tmp_path / "p32_train.py").write_text("raise SystemExit('it was started')\n")
    assert plugin_names(["."]) == ("p32_parrot",)
    assert plugin_names(["p32_parrot.py", str(tmp_path), "json"]) == ("p32_parrot", "json")
    assert sys.path[-1] == str(tmp_path)  # it hides nothing
    assert sys.path.count(str(tmp_path)) == 1


def test_a_package_by_its_path_brings_its_tasks(tmp_path: Path) -> None:
    package = tmp_path / "elsewhere" / "p32_package"
    (package / "tasks").mkdir(parents=True)
    (package / "__init__.py").touch()
    assert plugin_names(["elsewhere/p32_package"]) == ("p32_package",)
    assert plugin_task_folders(["elsewhere/p32_package"]) == [package / "tasks"]


@for_each(
    ("word", "says"),
    [
        ("./absent.py", "no such file or folder"),
        ("./empty", "registers a model"),
        ("json.py", "'json' is the name of .*rename the file"),
        ("my-model.py", "'my-model' cannot be the name of a module"),
    ],
)
def test_a_path_without_a_model_is_refused(
    word: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir(exist_ok=True)
    for name in ("json.py", "my-model.py"):
        (tmp_path / name).write_text(MODEL)
    with pytest.raises(ModelError, match=says):
        plugin_names([word])


def test_a_plugin_that_raises_is_named(tmp_path: Path) -> None:
    (tmp_path / "p32_broken.py").write_text(f"LIMIT = int('eight')\n{MODEL}")
    with pytest.raises(ModelError, match=r"plugin 'p32_broken' .*ValueError: invalid literal") as caught:
        plugin_task_folders(["."])
    assert "PYTHONPATH" not in str(caught.value)
    with pytest.raises(ModelError, match="No module named 'p32_absent'; install it or put its folder on PYTHONPATH"):
        plugin_task_folders(["p32_absent"])


def test_paths_are_made_absolute_for_jobs(tmp_path: Path) -> None:
    assert absolute_plugins(["package", ".", "a.py"]) == ("package", str(tmp_path), str(tmp_path / "a.py"))
