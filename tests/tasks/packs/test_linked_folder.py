"""A folder of packs that is reached through a symbolic link, as a cache on another disk is."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from msgspec.structs import replace

from lmms_eval.api.task import TaskOptions
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.lm_eval.task import LmEvalTask
from lmms_eval.tasks.packs.store import VARIABLE, changing, packs_folder, replaced
from lmms_eval.tasks.packs.wheels import made_pack
from lmms_eval.tasks.selection import select_tasks
from lmms_eval.tasks.yaml import included

TASK = """\
task: probe
dataset_path: json
test_split: test
doc_to_text: !function utils.text
doc_to_target: answer
"""


def test_its_tasks_have_the_rules_of_their_pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(included._FINDER, "roots", [])
    wheel = tmp_path / "lm_eval-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("lm_eval/tasks/probe/probe.yaml", TASK)
        archive.writestr(
            "lm_eval/tasks/probe/utils.py", "from lm_eval.tasks.probe.words import WORD\ntext = WORD.format\n"
        )
        archive.writestr("lm_eval/tasks/probe/words.py", "WORD = 'q'\n")
    (tmp_path / "disk").mkdir()
    (tmp_path / "cache").symlink_to(tmp_path / "disk")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache" / "packs"))
    assert packs_folder() == (tmp_path / "disk" / "packs").resolve()
    with made_pack(str(wheel)) as pack, changing() as table:
        replaced(table, replace(pack, is_trusted=True))
    (task,) = select_tasks(["lm-eval:probe"], Catalogue(), TaskOptions()).tasks
    assert isinstance(task, LmEvalTask)
    assert task.config.doc_to_text({}) == "q"
