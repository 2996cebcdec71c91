"""Choices of tasks in the package, as their YAML says where they stand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.task import TaskOptions
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.selection import select_tasks
from lmms_eval.tasks.yaml.task import YamlTask
from tests.parity.vectors import GOLDEN_DIR

GOLDEN = GOLDEN_DIR / "popular_tasks"
DECLARED = {
    "ai2d": "ai2d", "egoschema": "egoschema_subset", "longvideobench": "longvideobench_val_v", "mmau": "mmau_test_mini",
    "mmbench": "mmbench_en_dev", "mmmu": "mmmu_val", "mmmu_pro": "mmmu_pro_standard", "muirbench": "muirbench",
    "mvbench": "mvbench_action_antonym", "nextqa": "nextqa_mc_test", "perceptiontest": "perceptiontest_val_mc",
    "scienceqa": "scienceqa_img", "seedbench": "seedbench", "videomme": "videomme",
}  # fmt: skip


def documents(file: Path, task: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    return [line["doc"] for line in lines if line.get("task") == task and isinstance(line.get("doc"), dict)]


@pytest.mark.parametrize(("file", "name"), DECLARED.items())
def test_documents_have_their_choices_where_the_task_says(file: str, name: str) -> None:
    if not GOLDEN.is_dir():
        pytest.skip(f"no documents of the popular benchmarks at {GOLDEN}")
    (task,) = select_tasks([name], Catalogue(), TaskOptions(model_name="hf")).tasks
    assert isinstance(task, YamlTask) and task.choice_columns is not None
    columns, found = task.choice_columns, documents(GOLDEN / f"{file}.jsonl", name)
    assert found
    turned = [doc for doc in found if columns.rotations(doc) > 1]
    assert turned
    for doc in turned:
        options, right = columns.options(doc), columns.right(doc, columns.options(doc))
        text, changed = task.prompts.shown_text(doc), columns.rotated(doc, 1)
        assert right is not None and sorted(columns.rotated(doc, len(options)).items(), key=str) == sorted(
            doc.items(), key=str
        )
        assert task.prompts.shown_text(changed) != text or len(set(map(str, options))) == 1
        moved = columns.right(changed, columns.options(changed))
        assert columns.form == "text" or moved == (right - 1) % len(options)
