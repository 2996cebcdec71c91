"""The generator of made data, and the data of ``milebench_demo`` that ship with the package."""

from __future__ import annotations

import filecmp
import json
from pathlib import Path

from PIL import Image

from lmms_eval.api.task import Answer, TaskOptions
from lmms_eval.tasks import Catalogue, select_tasks
from lmms_eval.tasks.milebench import utils
from lmms_eval.tasks.milebench.facts import datasets
from tests.tasks.milebench import made

DEMO = Path(utils.__file__).parent / "demo"
MAX_BYTES = 300_000


def test_the_shipped_data_are_small_and_made_by_the_script(tmp_path: Path) -> None:
    made.generator().main([str(tmp_path)])
    files = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(DEMO) for path in DEMO.rglob("*") if path.is_file())
    notes = [str(file) for file in files if file.suffix == ".json"]
    assert filecmp.cmpfiles(tmp_path, DEMO, notes, shallow=False)[0] == notes
    for file in files:
        if file.suffix == ".png":
            with Image.open(tmp_path / file) as mine, Image.open(DEMO / file) as theirs:
                assert mine.size == theirs.size
    assert sum((DEMO / file).stat().st_size for file in files) < MAX_BYTES


def test_every_group_is_in_the_demonstration() -> None:
    names = made.generator().demo_names()
    assert {datasets()[name].group for name in names} == {facts.group for facts in datasets().values()}


def test_right_replies_score_in_full() -> None:
    selection = select_tasks(["milebench_demo"], Catalogue(), TaskOptions())
    assert len(selection.tasks) == len(made.generator().demo_names())
    for task in selection.tasks:
        task.load()
        for number in range(len(task)):
            reply = task.gold_answer(number)  # type: ignore[attr-defined]
            metrics = task.score(number, [Answer(reply)]).scores[0].metrics
            assert metrics["predictions"]["score"] > 0.999 and metrics["predictions"]["fixed"] > 0.999


def test_all_29_with_2_to_40_pictures(tmp_path: Path) -> None:
    folders = made.generator().write_all(tmp_path, size=(8, 8))
    assert [folder.name for folder in folders] == list(datasets())
    for facts in datasets().values():
        whole = json.loads((tmp_path / facts.name / f"{facts.name}.json").read_text("utf-8"))
        found = [len(entry["task_instance"]["images_path"]) for entry in whole["data"]]
        assert min(found) in (2, 3) and max(found) == 40
        assert {entry["image_quantity_level"] for entry in whole["data"]} == {"Few", "Medium", "Many"}
        for entry in whole["data"]:
            choices = entry["task_instance"].get("choice_list")
            assert choices is None or (entry["response"] in choices and len(set(choices)) == len(choices))
            assert all(
                (tmp_path / facts.name / "images" / name).is_file() for name in entry["task_instance"]["images_path"]
            )
        assert (tmp_path / facts.name / f"{facts.name}-adv.json").is_file() == facts.has_adversarial
