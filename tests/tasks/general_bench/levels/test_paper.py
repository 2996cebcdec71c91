import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.facts import LANGUAGE, MODALITIES, sheets, tasks
from lmms_eval.tasks.general_bench.levels.paper import rank_paper
from lmms_eval.tasks.general_bench.levels.scopes import find_scope
from lmms_eval.tasks.general_bench.levels.tables import SPECIALIST_COLUMN, Sheet, Table
from tests.cases import for_each
from tests.tasks.general_bench.levels.kit import changed, renamed, specialists_scores, table_of


def entry(ranked, name):
    return next(one for rows in ranked.entries.values() for one in rows if one.task == name)


def test_a_model_equal_to_the_specialists():
    ranked = rank_paper("m", table_of(specialists_scores()))
    assert not ranked.problems
    assert not ranked.warnings
    assert sum(part.support.wins for part in ranked.modalities.values()) == 584
    assert ranked.language.support.wins == 115
    # without the reference's epsilon the same but for the last digits (specification §8.3)
    assert ranked.levels[2] == ranked.levels[3] == pytest.approx(62.898, abs=5e-4)
    assert ranked.levels[4] == pytest.approx(61.456, abs=5e-4)
    assert ranked.levels[5] == pytest.approx(38.884, abs=5e-4)
    assert ranked.reached == 5


def test_levels_fall_from_2_to_5_for_scores_in_range():
    scores = {task.name: task.sound_specialist * (0.9 if task.row % 3 else 1.0) for task in tasks()}
    levels = rank_paper("m", table_of(scores)).levels
    assert levels[2] >= levels[3] >= levels[4] >= levels[5] > 0


def test_an_empty_table_wins_nothing():
    ranked = rank_paper("m", table_of({}))
    assert ranked.levels == {2: 0, 3: 0, 4: 0, 5: 0}
    assert ranked.reached is None
    assert len(ranked.missing) == 699
    assert all(part.support.wins == 0 for part in ranked.modalities.values())
    audio = ranked.modalities["Audio"]
    assert (audio.comprehension_rows, audio.generation_rows, ranked.language.support.total) == (24, 20, 115)


def test_zero_of_a_lower_is_better_metric_is_perfect():
    ranked = rank_paper("m", table_of({"Deep Fake Generation": 0, "Text to 3D Motion Generation": 0.0}))
    assert entry(ranked, "Deep Fake Generation").score == 100
    assert entry(ranked, "Deep Fake Generation").won


def test_a_smaller_chamfer_distance_wins():
    name = next(task.name for task in sheets()["3D-Generation"] if task.metric == "chamfer_distance")
    assert entry(rank_paper("m", table_of({name: 0.2})), name).won
    assert not entry(rank_paper("m", table_of({name: 0.3})), name).won


def test_rows_are_paired_by_name():
    table = table_of(specialists_scores())
    shuffled = Table("t", {name: Sheet(s.columns, s.rows[::-1]) for name, s in reversed(table.sheets.items())})
    assert rank_paper("m", shuffled).levels == rank_paper("m", table).levels


def test_word_error_rates_in_percent():
    name = next(task.name for task in sheets()["Audio-Generation"] if task.metric == "wer")
    table = table_of({name: 4.0})
    assert entry(rank_paper("m", table), name).score == 0
    assert "above 1" in rank_paper("m", table).warnings[0]
    declared = rank_paper("m", table, wer_in_percent=True)
    assert entry(declared, name).score == pytest.approx(96)
    assert not declared.warnings


def test_language_scores_that_look_like_fractions_are_warned_of_and_kept():
    ranked = rank_paper("m", table_of({"Causal Reasoning": 0.9, "Time Series": 3.0}))
    assert "read as percentages" in ranked.warnings[0]
    assert entry(ranked, "Causal Reasoning").score == 0.9


@for_each(
    ("cell", "reason"),
    [
        ("abc", "no number"),
        ("nan", "no finite number"),
        (float("nan"), "no finite number"),
        (-3, "outside the range"),
        (101, "outside the range"),
        ("85%", "without the sign"),
        (True, "no score"),
    ],
)
def test_a_bad_cell_is_named_and_the_rest_is_ranked(cell, reason):
    ranked = rank_paper("m", table_of({"Causal Reasoning": cell, "Ethical Reasoning": 100}))
    assert len(ranked.problems) == 1
    assert reason in ranked.problems[0]
    assert "sheet NLP, row 3 ('Causal Reasoning')" in ranked.problems[0]
    assert entry(ranked, "Causal Reasoning").raw is None
    assert entry(ranked, "Ethical Reasoning").won


@for_each("cell", ["∞", " INF ", "", None, float("inf")])
def test_no_score_is_no_problem(cell):
    ranked = rank_paper("m", table_of({"Causal Reasoning": cell}))
    assert not ranked.problems
    assert len(ranked.missing) == 699


@for_each(
    ("column", "value", "reason"),
    [
        (1, "Nothing Of That Name At All", "unknown task"),
        (1, "Deep Fake Generation", "belongs to sheet Image-Generation"),
        (3, "Foo", "unknown metric"),
        (3, "F1", "asks for 'ACC'"),
    ],
)
def test_a_row_of_another_kind_is_named(column, value, reason):
    table = changed(table_of({"Causal Reasoning": 70}), LANGUAGE, lambda sheet: renamed(sheet, 1, column, value))
    ranked = rank_paper("m", table)
    assert len(ranked.problems) == 1
    assert reason in ranked.problems[0]
    assert len(ranked.missing) == 699


def test_aliases_of_a_metric_are_accepted():
    table = changed(table_of({"Causal Reasoning": 70}), LANGUAGE, lambda sheet: renamed(sheet, 1, 3, "Accuracy"))
    ranked = rank_paper("m", table)
    assert not ranked.problems
    assert entry(ranked, "Causal Reasoning").won


def test_a_task_that_stands_twice_counts_as_missing():
    table = table_of({"Causal Reasoning": 70, "Ethical Reasoning": 70})
    ranked = rank_paper("m", changed(table, LANGUAGE, lambda sheet: renamed(sheet, 4, 1, "causal reasoning")))
    assert "stands in rows 3, 6" in ranked.problems[0]
    assert entry(ranked, "Causal Reasoning").raw is None


def test_sheets_of_another_layout_are_named_and_the_others_ranked():
    table = table_of(specialists_scores())
    without = {name: sheet for name, sheet in table.sheets.items() if name != "3D-Generation"}
    without["Audio-Generation"] = Sheet(("Task", "Score"), (("x", 1),))
    without["Haptics"] = Sheet((), ())
    ranked = rank_paper("m", Table("t", without))
    assert [problem.split(":")[0] for problem in ranked.problems] == [
        "sheet Audio-Generation",
        "sheet 3D-Generation is missing",
        "sheet 'Haptics'",
    ]
    assert len(ranked.missing) == 42
    assert ranked.modalities["Image"].support.wins == 316


def test_a_model_without_column_is_refused():
    with pytest.raises(DataError, match="no column 'other'"):
        rank_paper("other", table_of({}))


def test_another_specialists_table():
    ours = table_of({"Causal Reasoning": 70})
    theirs = table_of({**{task.name: task.specialist for task in tasks()}, "Causal Reasoning": 75}, SPECIALIST_COLUMN)
    ranked = rank_paper("m", ours, other=theirs)
    assert not ranked.problems
    assert not entry(ranked, "Causal Reasoning").won
    # published scores take their corrections, as in the shipped table
    sound = rank_paper("m", ours)
    assert [one.specialist for one in ranked.entries["Audio-Generation"]] == [
        one.specialist for one in sound.entries["Audio-Generation"]
    ]


def test_gaps_of_another_specialists_table_are_named():
    theirs = table_of(
        {task.name: task.specialist for task in tasks() if task.name != "Causal Reasoning"}, SPECIALIST_COLUMN
    )
    ranked = rank_paper("m", table_of({}), other=theirs)
    assert len(ranked.problems) == 1
    assert "the shipped score is taken" in ranked.problems[0]
    with pytest.raises(DataError, match="no sheet Image-Comprehension"):
        rank_paper("m", table_of({}), other=Table("s", {LANGUAGE: theirs.sheets[LANGUAGE]}))


def test_a_scope_ranks_its_own_rows():
    table = table_of(specialists_scores())
    skill = rank_paper("m", table, find_scope("D:I-C-3"))
    assert sum(map(len, skill.entries.values())) == 2
    assert set(skill.levels) == {2, 3}
    paradigm = rank_paper("m", table, find_scope("C:3d-generation"))
    whole = rank_paper("m", table)
    rows = whole.entries["3D-Generation"]
    assert paradigm.levels[2] == pytest.approx(sum(one.score for one in rows) / len(rows))
    for modality in MODALITIES:
        one = rank_paper("m", table, find_scope(f"B:{modality}"))
        assert one.levels[4] == whole.modalities[modality].levels[4]
