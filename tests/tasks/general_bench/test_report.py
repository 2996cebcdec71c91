from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from lmms_eval.api.outcome import TaskNumbers
from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench import report as module
from lmms_eval.tasks.general_bench import summary
from lmms_eval.tasks.general_bench.facts import TaskFacts, tasks
from lmms_eval.tasks.general_bench.levels.picture import figure
from lmms_eval.tasks.general_bench.report import DEMO, PREFIX, report, score_table
from lmms_eval.tasks.general_bench.summary import KEY, TaskScore, broken, not_evaluated
from tests.cases import for_each
from tests.tasks.general_bench.demo_kit import copied

SPORTS = "image_comprehension_sports_image_classification"
SERIES = "nlp_time_series"


def facts(name: str) -> TaskFacts:
    return next(one for one in tasks() if one.id == name)


def score(name: str, strict: float | None = 50.0, official: float | None = None, answered: int = 4) -> TaskScore:
    official = strict if official is None else official
    return TaskScore(name, facts(name).metric, official, strict, 5.0, answered, 4)


def numbers(found: TaskScore, **options: Any) -> TaskNumbers:
    return TaskNumbers({KEY: {**found.as_dict(), "options": options, "model": "Org/Toy"}}, found.withheld)


OTHER = {PREFIX + SERIES: numbers(score(SERIES, 2.0))}


def test_nothing_to_report() -> None:
    assert report({}, None) is None


def test_levels_have_no_bounds_if_documents_lack_a_score() -> None:
    given = {**OTHER, PREFIX + SPORTS: structs.replace(numbers(score(SPORTS)), missing={"": 2})}
    found = report(given, None)
    assert found is not None
    missing = found.parts["general_bench_report"][KEY]["missing"]
    assert missing["level2"] == {"n": 2, "reason": module.NO_BOUNDS}
    assert f"General-Level: 2 documents without a score, no bounds: {module.NO_BOUNDS}" in found.text
    whole = report(OTHER, None)
    assert whole is not None and "missing" not in whole.parts["general_bench_report"][KEY]


def test_levels_over_the_tasks(tmp_path: Path) -> None:
    found = report({PREFIX + SPORTS: numbers(score(SPORTS)), PREFIX + SERIES: numbers(score(SERIES, 2.0))}, None)
    assert found is not None and not found.files
    part = found.parts["general_bench_report"][KEY]
    assert [one["task"] for one in part["tasks"]] == [SPORTS, SERIES]
    # one of 271 rows of comprehension in one of four modalities, half of its mean
    assert part["levels"][2] == pytest.approx(50 / 271 / 2 / 4)
    assert part["levels"][4] == 0
    levels = part["general_level"]
    assert levels["modalities"]["Image"]["level2"] == pytest.approx(50 / 271 / 2)
    low, high = levels["sensitivity"]["level2"]["modalities"]["Image"]["interval"]
    assert low <= 50 / 271 / 2 < high
    assert levels["sensitivity"]["level4"]["no_interval"] == "0 in every draw"
    assert "General-Level of Org/Toy (profile paper)" in found.text
    assert "demonstration data" not in found.text
    json.dumps(found.parts)


def test_the_demonstration_has_a_report_of_its_own(tmp_path: Path) -> None:
    both = {PREFIX + SPORTS: numbers(score(SPORTS)), DEMO + SPORTS: numbers(score(SPORTS, 80.0), data_folder="demo")}
    found = report(both, tmp_path / "20260101_120000")
    assert found is not None
    parts = found.parts["general_bench_report"]
    assert set(parts) == {KEY, "general_bench_demo"}
    assert "demonstration data: no General-Level of a model" in found.text
    values = {one["task"]: one["strict"] for one in parts["general_bench_demo"]["tasks"]}
    assert values[SPORTS] == 80.0 and "image_generation_image_deraining" in values  # scored from its files
    assert [one["task"] for one in parts[KEY]["tasks"]] == [SPORTS]  # no data folder: no files
    # The levels are the model's own; answers in files are not, and are counted apart.
    own, whole = parts["general_bench_demo"], parts["general_bench_demo"]["with_files"]
    assert own["levels"][2] == pytest.approx(80 / 271 / 2 / 4) and own["levels"][2] < whole["levels"][2]
    assert "with_files" not in parts[KEY]
    files = len(own["from_files"])
    line = f"General-Level of Org/Toy together with the prediction.json of {files} tasks in the data's folder, which"
    assert f"{line} this run did not make (profile paper)" in found.text
    for label in (KEY, "general_bench_demo"):
        folder = tmp_path / f"20260101_120000_{label}"
        assert str(folder) in found.files
        names = {path.name for path in folder.iterdir()}
        assert {"score_calculation_org__toy.log", "Org__Toy_levels.json", "Org__Toy_levels.csv"} <= names
        assert all(Path(path).exists() for path in found.files)


@for_each(
    "options", [{"media_answers": "ask"}, {"only": "Deraining"}, {"data_root": None}], ids=lambda one: next(iter(one))
)
def test_files_are_not_scored_where_they_are_not_wanted(tmp_path: Path, options: dict[str, Any]) -> None:
    root = copied(tmp_path, "image/generation/Deraining")
    given = {"data_root": str(root), **options}
    (name,) = (PREFIX + SPORTS,)
    plain = report({name: numbers(score(SPORTS), data_root=str(root))}, None)
    changed = report({name: numbers(score(SPORTS), **given)}, None)
    assert plain is not None and changed is not None
    assert len(plain.parts["general_bench_report"][KEY]["tasks"]) == 2
    assert len(changed.parts["general_bench_report"][KEY]["tasks"]) == 1


def test_tasks_without_a_number_are_named_with_their_reason() -> None:
    given = {
        PREFIX + SPORTS: TaskNumbers({}, "2 of 3 failed"),
        PREFIX + SERIES: TaskNumbers({}),
    }
    found = report(given, None)
    assert found is not None
    assert "2 of 3 failed" in found.text and "nothing was scored" in found.text
    statuses = {one["status"] for one in found.parts["general_bench_report"][KEY]["tasks"]}
    assert statuses == {"failed"}


def test_tasks_that_could_not_be_evaluated_are_told_apart_from_failures() -> None:
    found = report({PREFIX + SPORTS: TaskNumbers({}, "", "closed set: no reference"), **OTHER}, None)
    assert found is not None
    statuses = {one["task"]: one["status"] for one in found.parts["general_bench_report"][KEY]["tasks"]}
    assert statuses == {SPORTS: "not evaluated", SERIES: "scored"}
    assert "closed set: no reference" in found.text


def test_no_levels_without_any_score(tmp_path: Path) -> None:
    found = report({PREFIX + SPORTS: TaskNumbers({}, "", "closed set")}, tmp_path / "stem")
    assert found is not None and not found.files
    assert "levels" not in found.parts["general_bench_report"][KEY]
    assert "no General-Level scores" in found.text


@for_each(
    ("groups", "is_there"),
    [
        (None, True),
        ({"general_bench"}, True),
        ({"general_bench_image"}, True),
        ({"general_bench_image_generation"}, True),
        ({"general_bench_image_comprehension"}, False),
        ({"general_bench_nlp"}, False),
        (set(), False),
    ],
    ids=str,
)
def test_files_are_scored_for_the_groups_that_were_chosen(
    groups: set[str] | None, is_there: bool, tmp_path: Path
) -> None:
    root = copied(tmp_path, "image/generation/Deraining")
    given = numbers(score(SPORTS), data_root=str(root))
    chosen = structs.replace(given, groups=None if groups is None else frozenset(groups))
    found = report({PREFIX + SPORTS: chosen}, None)
    assert found is not None
    part = found.parts["general_bench_report"][KEY]
    assert part["from_files"] == (["image_generation_image_deraining"] if is_there else [])


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot be written"):
        report({PREFIX + SPORTS: numbers(score(SPORTS))}, tmp_path / "file" / "stem")


def test_the_table_of_tasks() -> None:
    shown = score_table([
        not_evaluated(facts("audio_generation_texttospeech"), "wer", "no weights", 7),
        score(SPORTS, 40.0, 80.0, answered=2),
        score(SERIES, 0.0),
        broken(facts("image_generation_image_deraining"), "psnr", "x" * 500, 3),
    ])  # fmt: skip
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in shown.splitlines()]
    assert lines[0] == ["sheet", "task", "metric", "score", "±", "answered only", "items", "status"]
    by_sheet = {line[0]: line for line in lines[2:]}
    assert [line[0] for line in lines[2:]] == ["NLP", "Image-Comprehension", "Image-Generation", "Audio-Generation"]
    assert by_sheet["NLP"][3:] == ["0", "5", "", "4 of 4", ""]
    assert by_sheet["Image-Comprehension"][3:] == ["40", "5", "80", "2 of 4", "partially answered"]
    assert by_sheet["Audio-Generation"][3:] == ["", "", "", "0 of 7", "not evaluated: no weights"]
    assert by_sheet["Image-Generation"][7] == "x" * 120
    assert score_table([]).count("\n") == 1


def test_scores_by_words_say_whose_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "tokenizer_label", lambda: "treebank (NLTK 3.10.4)")
    monkeypatch.setattr(summary, "tokenizer_label", lambda: "treebank (NLTK 3.10.4)")
    words = structs.replace(score(SERIES), measure="bleu1")
    assert words.as_dict()["words"] == "treebank (NLTK 3.10.4)"
    assert "words" not in score(SPORTS).as_dict()
    assert score_table([words]).splitlines()[-1] == "BLEU-1 counts the words of the tokenizer treebank (NLTK 3.10.4)"
    assert "tokenizer" not in score_table([score(SPORTS)])


def test_without_matplotlib_there_is_no_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: object) -> Any:
        raise module.PlotUnavailable("pip install matplotlib")

    monkeypatch.setattr(module.picture, "draw", absent)
    found = report({PREFIX + SPORTS: numbers(score(SPORTS))}, tmp_path / "stem")
    assert found is not None and not any(path.endswith(".png") for path in found.files)
    assert any(path.endswith("_levels.json") for path in found.files)


def test_the_picture_of_a_demonstration_says_so() -> None:
    pytest.importorskip("matplotlib")
    levels = module._levels_of("Org/Toy", [score(SPORTS)])
    assert levels is not None
    titles = [figure(levels.ranked, remark).get_suptitle() for remark in ("", module.DEMONSTRATION)]
    assert titles[1] == f"{titles[0]}\n{module.DEMONSTRATION}"
