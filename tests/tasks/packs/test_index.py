from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval.tasks.packs.index import has_entry, imported_modules, index_of
from lmms_eval.tasks.packs.store import Pack


def pack(folder: Path, files: dict[str, str]) -> Pack:
    for name, text in files.items():
        place = folder / "q" / "tasks" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return Pack("p", "", str(folder), "", str(folder), "q/tasks", "", "")


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LMMS_EVAL_PACKS", str(tmp_path / "store"))
    return tmp_path / "store"


def test_kinds_tags_and_code(tmp_path: Path) -> None:
    made = pack(tmp_path, {
        "a.yaml": "task: a\ntag: [t, u]\noutput_type: multiple_choice\n",
        "b.yaml": "include: _base_yaml\ntask: b\ngroup: old\n",
        "_base_yaml": "process_docs: !function utils.f\ntag: base\n",
        "g.yaml": "group: g\ntask: [a, b]\n",
        "c.yaml": "task: c\nclass: !function task.C\n",
        ".hidden/h.yaml": "task: h\n",
        "none.yaml": "dataset_path: x\n",
    })  # fmt: skip
    (tmp_path / "q/tasks/loop").symlink_to(tmp_path / "q/tasks")
    (tmp_path / "q/tasks/gone.yaml").symlink_to(tmp_path / "nowhere")
    found = {entry.name: (entry.kind, entry.tags, entry.has_code) for entry in index_of(made).entries}
    assert found == {
        "a": ("task", ("t", "u"), False),
        "b": ("task", ("base", "old"), True),
        "c": ("task", (), True),
        "g": ("group", (), False),
    }


def test_the_kept_index_follows_the_files(tmp_path: Path, root: Path) -> None:
    made = pack(tmp_path, {"a.yaml": "include: _base_yaml\ntask: a\n", "_base_yaml": "tag: one\n"})
    assert index_of(made).entries[0].tags == ("one",)
    before = (root / "p.index.json").stat().st_mtime_ns
    assert index_of(made).entries[0].tags == ("one",)
    assert (root / "p.index.json").stat().st_mtime_ns == before
    pack(tmp_path, {"_base_yaml": "tag: another\n"})
    assert index_of(made).entries[0].tags == ("another",)


def test_a_name_is_found_in_the_kept_index(tmp_path: Path, root: Path) -> None:
    made = pack(tmp_path, {"a.yaml": "task: a\ntag: [t, task]\n", "g.yaml": "group: 'g \"é\"'\ntask: [a]\n"})
    assert not has_entry(made, "a")  # no index is kept yet
    index_of(made)
    assert [name for name in ("a", 'g "é"', "t", "task", "b", "", "a.yaml") if has_entry(made, name)] == ["a", 'g "é"']


def test_imported_modules_without_its_own_and_those_of_python(tmp_path: Path) -> None:
    code = (
        "import os, numpy as np\nfrom q.api import x\nfrom . import y\nimport near\ndef f():\n    from a.b import c\n"
    )
    assert imported_modules(pack(tmp_path, {"x/u.py": code, "x/near.py": ""})) == ["a.b", "numpy"]
