import math

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.facts import tasks
from lmms_eval.tasks.general_bench.levels.reference import rank_reference, specialists
from lmms_eval.tasks.general_bench.levels.tables import Sheet, Table
from tests.tasks.general_bench.levels.kit import changed, table_of

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
    assert ranked.modalities["Video"].level2 != rank_reference("m", table).modalities["Video"].level2


def test_a_shorter_sheet_divides_level_2_by_its_own_rows():
    table = table_of(PUBLISHED)
    shorter = rank_reference("m", changed(table, "Audio-Comprehension", lambda s: Sheet(s.columns, s.rows[:12])))
    full = rank_reference("m", table)
    first = [entry.specialist for entry in full.entries["Audio-Comprehension"][:12]]
    generation = (
        full.modalities["Audio"].level2 * 2
        - math.fsum(entry.specialist for entry in full.entries["Audio-Comprehension"]) / 24
    )
    assert shorter.modalities["Audio"].level2 == pytest.approx((math.fsum(first) / 12 + generation) / 2)
    assert shorter.modalities["Audio"].level3 == pytest.approx((math.fsum(first) / 24 + generation) / 2)
    assert "12 rows beside 24" in shorter.warnings[0]


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
