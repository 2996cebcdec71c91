import pytest

from lmms_eval.errors import DataError, UsageError
from lmms_eval.tasks.general_bench.facts import find_task
from lmms_eval.tasks.general_bench.levels.registering import LevelResult, register
from lmms_eval.tasks.general_bench.levels.tables import Sheet, Table, template
from tests.cases import for_each
from tests.tasks.general_bench.levels.kit import table_of

CAUSAL = ("Causal Reasoning", "ACC")


def entered(filled, name):
    task = find_task(name)
    return filled.cells.get(task.sheet, {}).get(task.row)


def test_names_and_metrics_are_found_however_they_are_written():
    filled = register("m", [LevelResult("causal reasoning ", "Accuracy", "70.5")], template())
    assert not filled.problems
    assert entered(filled, CAUSAL[0]) == 70.5
    assert filled.table.sheets["NLP"].rows[1][-1] == 70.5
    assert filled.table.sheets["NLP"].columns[-1] == "m"
    assert filled.updated == ("NLP",)


def test_declared_units_are_converted_and_nothing_is_guessed():
    rate = next(task for task in map(find_task, ["SpeechTranslation (zh-to-en)"]))
    results = [
        LevelResult(*CAUSAL, 0.7, unit="fraction"),
        LevelResult("Ethical Reasoning", "ACC", 0.8),
        LevelResult(rate.name, rate.spelling, 5.0, unit="percent"),
        LevelResult("Deep Fake Generation", "FID", 5.0, unit="raw"),
    ]
    filled = register("m", results, template())
    assert not filled.problems
    assert entered(filled, CAUSAL[0]) == pytest.approx(70)
    assert entered(filled, "Ethical Reasoning") == 0.8
    assert entered(filled, rate.name) == 0.05
    assert entered(filled, "Deep Fake Generation") == 5


@for_each(
    ("result", "reason"),
    [
        (LevelResult("Causal Reasonning", "ACC", 1), "did you mean"),
        (LevelResult("Causal Reasoning", "Foo", 1), "unknown metric"),
        (LevelResult("Causal Reasoning", "F1", 1), "asks for 'ACC'"),
        (LevelResult("Causal Reasoning", "ACC", float("nan")), "no finite number"),
        (LevelResult("Causal Reasoning", "ACC", -2), "outside the range"),
        (LevelResult("Causal Reasoning", "ACC", None), "no number"),
        (LevelResult("Causal Reasoning", "ACC", {"a": 1}), "no number"),
        (LevelResult("Causal Reasoning", "ACC", [1]), "no number"),
        (LevelResult("Causal Reasoning", "ACC", 1, unit="metres"), "unit 'metres'"),
        (LevelResult("Causal Reasoning", "ACC", 1, modality="Image"), "task of sheet NLP"),
        (LevelResult("Deep Fake Generation", "FID", 1, task_type="comprehension"), "task of sheet Image-Generation"),
    ],
)
def test_what_cannot_be_entered_is_named_and_the_rest_entered(result, reason):
    filled = register("m", [result, LevelResult("Ethical Reasoning", "ACC", 50)], template())
    assert len(filled.problems) == 1
    assert reason in filled.problems[0]
    assert entered(filled, "Ethical Reasoning") == 50
    assert sum(map(len, filled.cells.values())) == 1


def test_a_task_given_twice():
    same = register("m", [LevelResult(*CAUSAL, 50), LevelResult("Causal  reasoning", "acc", 50.0)], template())
    assert not same.problems
    assert entered(same, CAUSAL[0]) == 50
    different = register(
        "m", [LevelResult(*CAUSAL, 50), LevelResult(*CAUSAL, 60), LevelResult(*CAUSAL, 50)], template()
    )
    assert "given twice, as 50 and 60" in different.problems[0]
    assert entered(different, CAUSAL[0]) is None


def test_the_reference_takes_equal_names_and_the_last_score():
    results = [
        LevelResult(*CAUSAL, 50, "NLP", "comprehension"),
        LevelResult(*CAUSAL, 60, "NLP", "generation"),
        LevelResult("causal reasoning", "ACC", 70, "NLP", "comprehension"),
    ]
    filled = register("m", results, template(), "reference")
    assert entered(filled, CAUSAL[0]) == 60
    assert not filled.problems
    assert "left out" in filled.warnings[0]


@for_each("score", ["70", None, [1], float("nan")])
def test_the_reference_names_what_is_no_number(score):
    filled = register("m", [LevelResult(*CAUSAL, score, "NLP")], template(), "reference")
    assert "no number for a cell" in filled.problems[0]
    assert not filled.cells


@pytest.mark.parametrize("model", ["", " ", "a\x00b"])
def test_a_model_needs_a_name(model):
    with pytest.raises(UsageError, match="head of a column"):
        register(model, [], template())


def test_items_without_score_are_warned_of():
    filled = register("m", [LevelResult(*CAUSAL, 50, items_scored=3, items_expected=9)], template())
    assert "3 of 9 items" in filled.warnings[0]


def test_templates_of_another_form():
    with pytest.raises(UsageError, match="already"):
        register("m", [], table_of({}, "m"))
    with pytest.raises(UsageError, match="already"):
        register("metrics", [], template())
    other = Table("t", {"NLP": Sheet(("Name", "Metrics"), ())})
    with pytest.raises(DataError, match="no column 'Task Name'"):
        register("m", [], other)
    part = Table("t", {"NLP": template().sheets["NLP"]})
    filled = register("m", [LevelResult("Deep Fake Generation", "FID", 5)], part)
    assert "no row of this task" in filled.problems[0]
