"""The YAML files, through the loader that users run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.task import Answer, Task, TaskOptions
from lmms_eval.cli.main import main
from lmms_eval.errors import MediaError, TaskError
from lmms_eval.tasks import Catalogue, select_tasks
from lmms_eval.tasks.milebench.facts import datasets
from lmms_eval.tasks.selection import build_from_spec
from tests.tasks.milebench import made

GROUPS = {
    "milebench": ["realistic", "diagnostic"],
    "milebench_realistic": ["temporal", "semantic"],
    "milebench_diagnostic": ["needle", "retrieval"],
    "milebench_temporal": ["t1", "t2", "t3", "t4"],
    "milebench_semantic": ["s1", "s2", "s3", "s4", "s5"],
    "milebench_needle": ["n1", "n2"],
    "milebench_retrieval": ["i1"],
    "milebench_t1": ["actionlocalization", "actionprediction", "actionsequence"],
    "milebench_s2": ["slidevqa", "ocr-vqa", "docvqa"],
    "milebench_s5": ["nuscenes"],
}


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return Catalogue()


def task(catalogue: Catalogue, name: str, **options: Any) -> Task:
    (found,) = select_tasks([name], catalogue, TaskOptions(**options)).tasks
    found.load()
    return found


def test_all_tasks_and_groups_come_from_the_table(catalogue: Catalogue) -> None:
    selection = select_tasks(["milebench"], catalogue, TaskOptions())
    assert [found.name for found in selection.tasks] == [f"milebench_{facts.task}" for facts in datasets().values()]
    groups = {group.name: list(group.children) for group in selection.groups}
    assert len(groups) == 19
    assert {name: groups[name] for name in GROUPS} == {
        name: [f"milebench_{child}" for child in children] for name, children in GROUPS.items()
    }
    for found, facts in zip(selection.tasks, datasets().values(), strict=True):
        assert [metric.name for metric in found.metrics] == [facts.metric, f"{facts.metric}_fixed", "predictions"]
        assert (found.describe()["dataset_name"], found.scoring, found.num_fewshot) == (facts.name, "process", 0)


def test_a_worker_builds_the_same_task(catalogue: Catalogue, tmp_path: Path) -> None:
    made.write(tmp_path, "OCR-VQA")
    found = task(catalogue, "milebench_ocr-vqa", data_root=str(tmp_path), task_kwargs={"adversarial": True})
    again = build_from_spec(json.loads(json.dumps(found.spec())))
    again.load()
    for number in range(len(found)):
        mine, theirs = (one.score(number, [Answer("A. kettle")]) for one in (found, again))
        assert mine.scores == theirs.scores and mine.target.startswith("the word")


def test_settings_of_the_command_line(catalogue: Catalogue, tmp_path: Path) -> None:
    made.write(tmp_path, "TQA")
    sheet = task(catalogue, "milebench_tqa", data_root=str(tmp_path), task_kwargs={"combine_image": 1})
    (request,) = sheet.exchange(2, 0).open()
    assert len(request.build_messages().extract_media()[0]) == 1
    usual = task(catalogue, "milebench_tqa", data_root=str(tmp_path))
    assert usual.fingerprint()["config"] != sheet.fingerprint()["config"]
    with pytest.raises(TaskError, match="no task option 'sheets'"):
        task(catalogue, "milebench_tqa", data_root=str(tmp_path), task_kwargs={"sheets": 1})


def test_all_29_data_sets_run_and_write_predictions(tmp_path: Path) -> None:
    root = made.write(tmp_path / "data", counts=(2, 7))
    out = tmp_path / "out"
    words = ["--model", "baseline", "--model_args", "strategy=gold", "--tasks", "milebench", "--data_root", str(root)]
    assert main(["eval", *words, "--output_path", str(out)]) == 0
    (results,) = out.rglob("*_results.json")
    found = json.loads(results.read_text("utf-8"))["results"]
    for facts in datasets().values():
        entry = found[f"milebench_{facts.task}"]
        assert entry[f"{facts.metric},none"] == pytest.approx(1.0, abs=1e-6)
        assert entry[f"{facts.metric}_fixed,none"] == pytest.approx(1.0, abs=1e-6)
        predictions = json.loads((out / "milebench" / "baseline" / facts.name / "pred.json").read_text("utf-8"))
        assert [record["sample_id"] for record in predictions] == [0, 1]


def test_variants_are_chosen_on_the_command_line(tmp_path: Path) -> None:
    root, out = made.write(tmp_path / "data", "OCR-VQA", counts=(2, 3)), tmp_path / "out"
    words = ["--model", "baseline", "--model_args", "strategy=gold", "--tasks", "milebench_ocr-vqa"]
    settings = ["--task_kwargs", "adversarial=true,combine_image=1"]
    assert main(["eval", *words, *settings, "--data_root", str(root), "--output_path", str(out)]) == 0
    file = out / "milebench" / "baseline-adv-combined_1" / "OCR-VQA" / "pred.json"
    found = json.loads(file.read_text("utf-8"))
    assert [record["image"] for record in found] == [[f"OCR-VQA/combined_1_images/{number}-0.jpg"] for number in (0, 1)]
    assert all(record["question"].startswith("<ImageHere>\n") for record in found)
    assert all(record["gt_response"].startswith("the word") for record in found)


def test_a_sample_that_cannot_be_scored_fails_alone(tmp_path: Path) -> None:
    root = made.write(tmp_path / "data", "OCR-VQA", counts=(2, 7))
    made.edit(root / "OCR-VQA" / "OCR-VQA.json", response="no option")
    words = ["--model", "baseline", "--model_args", "strategy=gold", "--tasks", "milebench_ocr-vqa"]
    code = main(["eval", *words, "--data_root", str(root), "--output_path", str(tmp_path / "out"), "--log_samples"])
    assert code == 3
    (samples,) = (tmp_path / "out").rglob("*_samples_milebench_ocr-vqa.jsonl")
    assert "'no option' is not one of the 4 options" in samples.read_text("utf-8")
    (found,) = json.loads((tmp_path / "out" / "milebench" / "baseline" / "OCR-VQA" / "pred.json").read_text("utf-8"))
    assert found["sample_id"] == 1


def test_a_sample_without_its_picture_cannot_be_asked(catalogue: Catalogue, tmp_path: Path) -> None:
    made.write(tmp_path, "OCR-VQA", counts=(2, 7))
    made.edit(tmp_path / "OCR-VQA" / "OCR-VQA.json", images_path=["gone.png", "gone.png"])
    found = task(catalogue, "milebench_ocr-vqa", data_root=str(tmp_path))
    with pytest.raises(MediaError, match=r"gone\.png"):
        found.exchange(0, 0).open()[0].build_messages()
    assert found.exchange(1, 0).open()[0].build_messages()
