import math

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.facts import tasks
from lmms_eval.tasks.general_bench.levels.reference import rank_reference, specialists
from lmms_eval.tasks.general_bench.levels.tables import Sheet, Table
from tests.cases import for_each
from tests.tasks.general_bench.levels.kit import changed, renamed, table_of

PUBLISHED = {task.name: task.specialist for task in tasks()}


def test_the_specialists_as_a_model():
    """The values that the specification prints (§8.3)."""
    levels = rank_reference("m", table_of(PUBLISHED)).levels
    assert [round(levels[level], 2) for level in (2, 3, 4, 5)] == [112.21, 112.21, 156.21, 98.84]
    sound = rank_reference("m", table_of({task.name: task.sound_specialist for task in tasks()}), specialists(True))
    assert round(sound.levels[3], 3) == 62.898


def test_an_empty_table_wins_five_audio_tasks():
    ranked = rank_reference("m", table_of({}))
    assert ranked.modalities["Audio"].support.wins == 5
    assert len(ranked.missing) == 699


def test_rows_are_paired_by_position_with_a_warning():
    table = table_of(PUBLISHED)
    backwards = changed(table, "Video-Generation", lambda sheet: Sheet(sheet.columns, sheet.rows[::-1]))
    ranked = rank_reference("m", backwards)
    assert "Video-Generation" in ranked.warnings[0]
    assert ranked.modalities["Video"].levels[2] != rank_reference("m", table).modalities["Video"].levels[2]


def test_a_shorter_sheet_divides_level_2_by_its_own_rows():
    table = table_of(PUBLISHED)
    shorter = rank_reference("m", changed(table, "Audio-Comprehension", lambda s: Sheet(s.columns, s.rows[:12])))
    full = rank_reference("m", table)
    first = [entry.specialist for entry in full.entries["Audio-Comprehension"][:12]]
    generation = (
        full.modalities["Audio"].levels[2] * 2
        - math.fsum(entry.specialist for entry in full.entries["Audio-Comprehension"]) / 24
    )
    assert shorter.modalities["Audio"].levels[2] == pytest.approx((math.fsum(first) / 12 + generation) / 2)
    assert shorter.modalities["Audio"].levels[3] == pytest.approx((math.fsum(first) / 24 + generation) / 2)
    assert "12 rows and 24" in shorter.warnings[0]


def test_a_negative_mapped_value_is_refused_with_its_row():
    with pytest.raises(DataError, match="sheet Image-Generation, 'Deep Fake Generation'"):
        rank_reference("m", table_of({"Deep Fake Generation": -1}))


def test_other_sheets_are_refused():
    table = table_of({})
    fewer = Table("t", {name: sheet for name, sheet in table.sheets.items() if name != "NLP"})
    with pytest.raises(DataError, match="missing: NLP"):
        rank_reference("m", fewer)
    with pytest.raises(DataError, match="unknown: Haptic-Comprehension"):
        rank_reference("m", Table("t", {**table.sheets, "Haptic-Comprehension": table.sheets["NLP"]}))


def test_the_sheet_of_levels_is_passed_over():
    table = table_of({})
    assert rank_reference("m", Table("t", {**table.sheets, "Level-Scores": Sheet((), ())})).levels[2] == 0


@for_each("text", ["n/a", "70 %", "∞", " inf", "seventy"])
@for_each(("sheet", "stops"), [("NLP", True), ("Image-Generation", False)])
def test_a_text_that_is_no_number_is_no_score_in_any_sheet(sheet, stops, text):
    table = table_of(PUBLISHED)
    empty, texts = (
        rank_reference("m", changed(table, sheet, lambda one, cell=cell: renamed(one, 3, -1, cell)))
        for cell in (None, text)
    )
    assert (texts.levels, texts.modalities, texts.language) == (empty.levels, empty.modalities, empty.language)
    assert texts.entries[sheet][3].raw is None
    assert not empty.warnings
    assert [f"sheet NLP, row 5: {text!r}" in warning for warning in texts.warnings] == [True] * stops
    assert all("the authors' program stops" in warning for warning in texts.warnings)


def test_numbers_as_text_count_and_stop_the_authors_program_in_the_language_sheet():
    table = table_of(PUBLISHED)
    rows = table.sheets["NLP"].rows
    as_text = changed(table, "NLP", lambda one: renamed(one, 0, -1, str(rows[0][-1])))
    found = rank_reference("m", as_text)
    assert found.levels == rank_reference("m", table).levels
    assert len(found.warnings) == 1
    theirs = table_of(PUBLISHED, "SoTA Performance")
    in_theirs = rank_reference("m", table, changed(theirs, "NLP", lambda one: renamed(one, 0, -1, "x")))
    assert "specialists" in in_theirs.warnings[0]


def test_sheets_of_another_form_stop_the_authors_program():
    table, theirs = table_of(PUBLISHED), table_of(PUBLISHED, "SoTA Performance")
    added = [
        Table("t", {**one.sheets, "Image-Generation-2": one.sheets["Image-Generation"]}) for one in (table, theirs)
    ]
    (warning,) = rank_reference("m", *added).warnings
    assert "Image-Generation-2" in warning
    assert "the authors' program stops" in warning


def test_refusals_say_that_the_authors_program_stops_too():
    with pytest.raises(DataError, match="the authors' program stops"):
        rank_reference("m", table_of({"Deep Fake Generation": -1}))
    with pytest.raises(DataError, match=r"sheet NLP.*RMSE.*the authors' program stops"):
        rank_reference("m", table_of({task.name: 0 for task in tasks()}))
