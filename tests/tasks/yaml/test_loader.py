from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from lmms_eval.errors import TaskError
from lmms_eval.tasks.yaml.functions import FunctionRef, describe_all, resolve_all
from lmms_eval.tasks.yaml.loader import YamlReader, decode, encode
from lmms_eval.utils.files import StatedPath
from tests.cases import for_each


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_first_include_beats_later_ones_and_the_file_beats_all(tmp_path: Path) -> None:
    write(tmp_path, "_a", "one: a\ntwo: a\nthree: a\n")
    write(tmp_path, "sub/_b", "one: b\ntwo: b\nfour: b\n")
    top = write(tmp_path, "t.yaml", "include: [_a, sub/_b]\none: own\n")
    assert YamlReader().read(top) == {"one": "own", "two": "a", "three": "a", "four": "b"}


def test_include_merges_top_level_keys_only(tmp_path: Path) -> None:
    write(tmp_path, "_a", "kwargs: {x: 1, y: 2}\n")
    top = write(tmp_path, "t.yaml", "include: _a\nkwargs: {x: 3}\n")
    assert YamlReader().read(top) == {"kwargs": {"x": 3}}


def test_absolute_include(tmp_path: Path) -> None:
    base = write(tmp_path, "far/_base", "x: 1\n")
    top = write(tmp_path, "t.yaml", f"include: {base}\n")
    assert YamlReader().read(top) == {"x": 1}


def test_include_cycle_names_the_chain(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", "include: b.yaml\n")
    write(tmp_path, "b.yaml", "include: a.yaml\n")
    with pytest.raises(TaskError, match=r"include cycle.*a\.yaml -> .*b\.yaml -> .*a\.yaml.*take one"):
        YamlReader().read(tmp_path / "a.yaml")


def test_one_base_included_twice_is_no_cycle(tmp_path: Path) -> None:
    write(tmp_path, "_base", "x: 1\n")
    write(tmp_path, "_b", "include: _base\ny: 2\n")
    top = write(tmp_path, "t.yaml", "include: [_base, _b]\n")
    assert YamlReader().read(top) == {"x": 1, "y": 2}


@for_each(
    ("text", "message"),
    [
        ("task: [a\n", r"t\.yaml, line \d+: not valid task YAML"),
        ("a: 1\nb: !unknown x\n", r"t\.yaml, line 2: .*unknown"),
        ("- a\n", r"must be a mapping"),
        ("include: nowhere\n", r"nowhere: cannot be read \(included by .*t\.yaml\)"),
        ("include: {a: 1}\n", r"include must be a path"),
        ("when: 2024-13-45\n", r"t\.yaml: .*quotes"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TaskError, match=message):
        YamlReader().read(write(tmp_path, "t.yaml", text))


def test_functions_belong_to_the_file_that_writes_them(tmp_path: Path) -> None:
    write(tmp_path, "one/utils.py", "def f():\n    return 'one'\n")
    write(tmp_path, "two/utils.py", "def f():\n    return 'two'\n")
    write(tmp_path, "one/_base", "first: !function utils.f\n")
    top = write(tmp_path, "two/t.yaml", "include: ../one/_base\nsecond: !function utils.f\n")
    made = resolve_all(YamlReader().read(top))
    assert (made["first"](), made["second"]()) == ("one", "two")


def test_a_module_is_loaded_once(tmp_path: Path) -> None:
    write(tmp_path, "utils.py", "STATE = []\ndef add(x):\n    STATE.append(x)\ndef get():\n    return STATE\n")
    top = write(tmp_path, "t.yaml", "add: !function utils.add\nget: !function utils.get\n")
    first, second = resolve_all(YamlReader().read(top)), resolve_all(YamlReader().read(top))
    first["add"](5)
    assert second["get"]() == [5]


def test_installed_dotted_module(tmp_path: Path) -> None:
    top = write(tmp_path, "t.yaml", "f: !function os.path.basename\n")
    assert resolve_all(YamlReader().read(top))["f"] is os.path.basename


def test_a_module_of_an_importable_package_keeps_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "demo_pack/__init__.py", "")
    write(tmp_path, "demo_pack/helper.py", "VALUE = 7\n")
    write(tmp_path, "demo_pack/utils.py", "from .helper import VALUE\ndef f():\n    return VALUE\n")
    top = write(tmp_path, "demo_pack/t.yaml", "f: !function utils.f\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    function = resolve_all(YamlReader().read(top))["f"]
    assert function() == 7
    assert function.__module__ == "demo_pack.utils"


def test_the_current_folder_is_never_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "cwd/stray_helper.py", "def f():\n    return 1\n")
    top = write(tmp_path, "tasks/t.yaml", "f: !function stray_helper.f\n")
    monkeypatch.chdir(tmp_path / "cwd")
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    with pytest.raises(TaskError, match=r"neither .*tasks/stray_helper\.py nor an installed module"):
        resolve_all(YamlReader().read(top))
    assert sys.path[0] == ""


@for_each(
    ("code", "name", "message"),
    [
        ("def process(doc):\n    pass\n", "utils.proces", r"t\.yaml: key 'process_results'.*did you mean process\?"),
        ("", "util.f", r"neither .*util\.py nor an installed module 'util'; did you mean utils\?"),
        ("import no_such_thing\n", "utils.f", r"utils\.py cannot be imported: ModuleNotFoundError.*no_such_thing"),
        (
            "import lmms_eval.no_such\n",
            "utils.f",
            r"utils\.py cannot be imported: \w+: lmms_eval\.no_such is not",
        ),
        ("", "lmms_eval.tasks.no_such.f", r"t\.yaml: key .*: lmms_eval\.tasks\.no_such is not part.*--include_path"),
        ("raise RuntimeError('boom')\n", "utils.f", r"RuntimeError: boom"),
        ("", "f", r"module\.function"),
    ],
)
def test_missing_functions_name_file_key_and_neighbour(tmp_path: Path, code: str, name: str, message: str) -> None:
    write(tmp_path, "utils.py", code)
    top = write(tmp_path, "t.yaml", f"process_results: !function {name}\n")
    with pytest.raises(TaskError, match=message):
        resolve_all(YamlReader().read(top))


def test_index_mode_reads_heads_and_imports_nothing(tmp_path: Path) -> None:
    write(tmp_path, "utils.py", "raise RuntimeError('imported')\n")
    top = write(
        tmp_path, "t.yaml", "task: a\nmetric_list:\n  - metric: [broken\ntag:\n  - x\n  - y\nf: !function utils.f\n"
    )
    assert YamlReader(("task", "tag")).read(top) == {"task": "a", "tag": ["x", "y"]}


def test_data_paths_remember_the_file_that_states_them(tmp_path: Path) -> None:
    write(tmp_path, "base/_b", "dataset_kwargs: {data_files: {test: [d.jsonl]}}\n")
    top = write(tmp_path, "t.yaml", "include: base/_b\n")
    stated = YamlReader().read(top)["dataset_kwargs"]["data_files"]["test"][0]
    assert isinstance(stated, StatedPath)
    assert stated.in_folder == tmp_path / "base" / "d.jsonl"


def test_values_survive_the_way_to_another_process() -> None:
    value = {
        "f": FunctionRef("u.f", "/x/t.yaml"),
        "p": StatedPath("d", Path("/x")),
        1: [True, None, 2.5],
        "a": {"b": "c"},
    }
    back = decode(encode(value))
    assert back == value
    assert back["p"].folder == Path("/x")
    with pytest.raises(TaskError, match="scoring: inline"):
        encode({"f": print})


def test_functions_are_described_by_name() -> None:
    assert describe_all([FunctionRef("u.f", "x"), len]) == ["<function u.f>", "<function builtins.len>"]


def test_paths_are_resolved_as_pathlib_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tree" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "tree")
    (tmp_path / "tree" / "inner" / "task.yaml").write_text("task: inner\n")
    (tmp_path / "tree" / "other.yaml").symlink_to("inner/task.yaml")
    (tmp_path / "outer.yaml").write_text("include: link/inner/../other.yaml\n")
    monkeypatch.chdir(tmp_path)
    reader = YamlReader()
    for path in (Path("outer.yaml"), tmp_path / "link" / ".." / "outer.yaml", Path("tree/inner/../../outer.yaml")):
        assert reader.all_files(path) == [path.resolve(), tmp_path.resolve() / "tree" / "inner" / "task.yaml"]
