import csv

import pytest

from lmms_eval.errors import UnknownNameError
from lmms_eval.tasks.general_bench.facts import (
    find_metric,
    find_task,
    fold_metric,
    folded_tasks,
    metrics,
    sheets,
    skills,
    tasks,
)
from lmms_eval.tasks.general_bench.levels.formulas import mapped_names, paper_score
from lmms_eval.tasks.general_bench.levels.reference import specialists
from tests.cases import for_each
from tests.parity.vectors import DATA_DIR

TABLES = DATA_DIR / "general_bench"
needs_tables = pytest.mark.skipif(not TABLES.is_dir(), reason=f"no facts tables in {TABLES}")


def lines(name):
    with open(TABLES / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_numbers_of_the_benchmark():
    assert {name: len(rows) for name, rows in sheets().items()} == {
        "NLP": 115,
        "Image-Comprehension": 271,
        "Image-Generation": 45,
        "Video-Comprehension": 126,
        "Video-Generation": 46,
        "Audio-Comprehension": 24,
        "Audio-Generation": 20,
        "3D-Comprehension": 30,
        "3D-Generation": 22,
    }
    assert len(tasks()) == len(folded_tasks()) == 699
    assert len(skills()) == len({task.skill for task in tasks()}) == 145
    assert len(metrics()) == len({task.metric for task in tasks()}) == 63
    assert len({task.spelling for task in tasks()}) == 70
    assert sum(task.needs.startswith("offline") for task in tasks()) == 604
    assert sum(not metrics()[task.metric].higher_is_better for task in tasks()) == 60


@for_each(
    ("given", "name"),
    [
        ("causal  REASONING", "Causal Reasoning"),
        ("Image_Detail_Enhancement", "Image Detail Enhancement "),
        ("Sketch-to-Image Hair Generation", "Sketch-to-Image Hair Generation (数据目前有问题)"),
        ("SpeechTranslation (zh-to-en)", "SpeechTranslation （zh-to-en）"),
    ],
)
def test_tasks_are_found_however_they_are_written(given, name):
    assert find_task(given).name == name


def test_an_unknown_task_has_the_nearest_names():
    with pytest.raises(UnknownNameError, match="Causal Reasoning"):
        find_task("Causal Reasonning")


@for_each(
    ("given", "key"),
    [
        ("acc", "accuracy"),
        ("BLUE_1", "bleu1"),
        ("bleu 1", "bleu1"),
        ("CD", "chamfer_distance"),
        ("EPE (px)", "epe"),
        ("RTE ( Relative Translation Error)", "rte"),
        ("rouge-l F", "rouge_l"),
        ("Frame-Acc", "frame_accuracy_clip"),
        ("AP@50", "detection_ap@50"),
        ("mAP@50", "map@50"),
    ],
)
def test_metrics_are_found_by_any_spelling(given, key):
    assert find_metric(given).key == key


def test_an_unknown_metric_has_the_nearest_spellings():
    with pytest.raises(UnknownNameError, match="BLEU-1"):
        find_metric("BLEU-11")


def test_no_spelling_means_two_metrics():
    for metric in metrics().values():
        for spelling in (metric.key, *metric.spellings):
            assert find_metric(spelling) is metric, (spelling, fold_metric(spelling))


def test_published_scores_lie_in_their_metric_s_range():
    for task in tasks():
        metric = metrics()[task.metric]
        assert metric.low <= task.sound_specialist <= metric.high, task.name


@needs_tables
def test_tasks_equal_the_published_table():
    for task, line in zip(tasks(), lines("tasks.csv"), strict=True):
        own = (task.sheet, task.modality, task.paradigm or "none", task.row, task.number, task.name, task.short_name)
        wanted = tuple(line[key] for key in ("sheet", "modality", "paradigm", "row", "no", "task_name"))
        assert tuple(map(str, own)) == (*wanted, line["task_short_name"])
        assert (task.spelling, task.metric, task.needs) == (line["metric"], line["metric_key"], line["computable"])
        assert (task.skill, skills()[task.skill]) == (line["skill_code"], line["skill"])
        assert task.specialist == float(line["sota"])
        assert metrics()[task.metric].higher_is_better == (line["direction"] == "higher")
        assert bool(task.note) == ("already-normalised" in line["flags"])


@needs_tables
def test_mapping_constants_equal_the_published_table():
    for task, line in zip(tasks(), lines("tasks.csv"), strict=True):
        metric = mapped_names().get(task.spelling.upper()) if task.sheet != "NLP" else None
        given = line["normalisation_T"]
        if given in ("", "rule"):
            assert (metric is not None and not metric.constant) == (given == "rule"), task.name
        else:
            constant = metric.constant if metric.mapping == "inverse" else 1 / metric.constant
            assert constant == pytest.approx(float(given)), task.name


@needs_tables
def test_mapped_specialists_equal_the_published_table():
    for task, line in zip(tasks(), lines("tasks.csv"), strict=True):
        mapped = paper_score(metrics()[task.metric], task.sound_specialist)
        assert mapped == pytest.approx(float(line["sota_normalised_corrected"]), rel=1e-9), task.name


@needs_tables
def test_corrections_equal_the_published_ones():
    published, corrected = specialists(), specialists(corrected=True)
    changed = {
        (sheet, row): (old.metric, old.cell, new.metric, new.cell)
        for sheet, rows in published.items()
        for row, (old, new) in enumerate(zip(rows, corrected[sheet], strict=True))
        if old != new
    }
    wanted = {
        (line["sheet"], int(line["row"])): (
            line["metric_in_workbook"],
            float(line["sota_in_workbook"]),
            line["metric_used"],
            pytest.approx(float(line["sota_used"]), rel=1e-12),
        )
        for line in lines("sota_corrections.csv")
    }
    assert changed == wanted


@needs_tables
def test_skills_equal_the_published_table():
    counted = [(code, name, sum(task.skill == code for task in tasks())) for code, name in skills().items()]
    published = [(line["skill_code"], line["skill"], int(line["tasks"])) for line in lines("skills.csv")]
    assert sorted(counted) == sorted(published)
