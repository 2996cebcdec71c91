"""``--check_integrity``."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval.errors import TaskError
from lmms_eval.evaluation.run import run
from tests.evaluation.kit import Told, config


def test_sound_tasks_are_run(tmp_path: Path) -> None:
    assert run(config(tmp_path, model="told", check_integrity=True), Told()).exit_code == 0


def test_nothing_is_asked_of_a_broken_task(tmp_path: Path) -> None:
    chosen = config(tmp_path, model="told", check_integrity=True)
    (tmp_path / "tasks" / "utils.py").write_text("def wrong(doc, results):\n    raise KeyError('gone')\n")
    (file,) = (tmp_path / "tasks").glob("*.yaml")
    text = file.read_text()
    file.write_text(f"{text}\nprocess_results: !function utils.wrong\n")
    model = Told()
    with pytest.raises(TaskError, match=r"nothing was asked[^~]*KeyError: 'gone'"):
        run(chosen, model)
    assert model.asked == []
