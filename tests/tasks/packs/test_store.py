from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval.errors import DataError, UnknownNameError
from lmms_eval.tasks._task_utils.archives import alone
from lmms_eval.tasks.packs import store
from lmms_eval.tasks.packs.store import Pack, changing, held, pack_named, packs, sweep, use, used_pack
from tests.cases import for_each


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LMMS_EVAL_PACKS", str(tmp_path))
    monkeypatch.setattr(store, "_used", {})
    return tmp_path


def pack(name: str = "p", folder: str = "p/1", tasks: str = "q/tasks") -> Pack:
    return Pack(name, "1", "q-1-py3-none-any.whl", "ab" * 32, folder, tasks, "", "2026-01-01 00:00:00")


def test_what_killed_processes_left_is_removed_at_once(root: Path) -> None:
    for name in (".download-dead", ".download-live", "old/1", "p/1"):
        (root / name).mkdir(parents=True)
        (root / name / store.USE).touch()
    (root / ".packs.json.1.tmp").write_text("half")
    (root / ".unpacking-dead" / "q").mkdir(parents=True)
    with held(root / ".download-live"), changing() as table:
        table.append(pack())
    assert sorted(path.name for path in root.iterdir()) == [".download-live", "p", "packs.json"]
    with alone(root):
        sweep()
    assert sorted(path.name for path in root.iterdir()) == ["p", "packs.json"]
    assert packs() == [pack()]


@for_each("folder, tasks, package", [
    ("p/1", "q/tasks", "q"), ("p/1", "src/q/tasks", "q"), ("p/1", "q/benchmarks", "q"), ("/x/q", "tasks", "q"),
    ("/x/q/tasks", ".", "q"), ("/x/y", "q/tasks", "q"), ("/x/y", ".", "y"), ("/x/tasks/y", "q/tasks/deep", "q"),
])  # fmt: skip
def test_the_package_that_its_code_imports_itself_from(folder: str, tasks: str, package: str) -> None:
    assert pack(folder=folder, tasks=tasks).package == package


def test_a_used_pack_is_known_by_its_files(root: Path) -> None:
    (root / "p/1/q/tasks").mkdir(parents=True)
    use(pack())
    assert used_pack(root / "p/1/q/tasks/a/b.yaml") == pack()
    assert used_pack(root / "p/1/other.yaml") is None
    with pytest.raises(DataError, match=r"pack r: .* is gone; remove the pack \(lmms-eval packs remove r\)"):
        use(pack("r", "r/1"))


def test_unknown_names(root: Path) -> None:
    with changing() as table:
        table.append(pack("lm-eval"))
    with pytest.raises(UnknownNameError, match="did you mean lm-eval"):
        pack_named("lm_eval")
