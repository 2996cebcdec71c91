from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from lmms_eval.api.task import Task, TaskOptions
from lmms_eval.tasks.manager import TaskManager
from lmms_eval.tasks.mmie import judge_prompts
from lmms_eval.tasks.selection import build_from_spec
from tests.tasks.mmie.kit import prompt_file


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    return prompt_file(tmp_path)


def with_texts(file: Path) -> Task:
    return demo(run_options={"judge_prompts": str(file)})


def demo(**options: object) -> Task:
    found = TaskManager().load_task_or_group("mmie_demo", options=TaskOptions(**options))  # type: ignore[arg-type]
    return found["mmie_demo"]


def names(task: Task) -> list[str]:
    return [metric.name for metric in task.metrics]


def test_the_metric_has_its_plain_name_without_the_official_texts(texts: Path) -> None:
    assert names(with_texts(texts)) == names(demo()) == ["mmie_judge", "mmie_judge_strict", "judged", "answers"]


def test_the_official_texts_earn_the_name(texts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = judge_prompts.load_prompts(texts)
    official = {tag: hashlib.sha256(text.encode()).hexdigest() for tag, text in prompts.systems.items()}
    monkeypatch.setattr(judge_prompts, "OFFICIAL", official)
    task = with_texts(texts)
    assert names(task) == ["mmie_score", "mmie_score_strict", "judged", "answers"]
    again = build_from_spec(task.spec())
    assert names(again) == names(task) and again.name == "mmie_demo"


def test_other_texts_are_another_scoring_of_the_same_answers(texts: Path) -> None:
    plain = demo().fingerprint()
    other = with_texts(texts).fingerprint()
    assert plain["scoring"] != other["scoring"]
    assert {key: value for key, value in plain.items() if key != "scoring"} == {
        key: value for key, value in other.items() if key != "scoring"
    }


def test_tasks_by_category() -> None:
    manager = TaskManager()
    assert {"mmie", "mmie_sa", "mmie_pbl", "mmie_msr", "mmie_f1", "mmie_demo"} <= set(manager.all_tasks)
    folder = str(Path(judge_prompts.__file__).parent / "demo")
    found = manager.load_task_or_group(
        ["mmie", "mmie_sa", "mmie_pbl", "mmie_msr", "mmie_f1"], options=TaskOptions(data_root=folder)
    )
    assert {name: len(task) for name, task in found.items()} == {
        "mmie": 36, "mmie_sa": 12, "mmie_pbl": 12, "mmie_msr": 12, "mmie_f1": 36,
    }  # fmt: skip
