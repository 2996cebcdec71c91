import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import UnreadableAnswer
from lmms_eval.tasks.general_bench.readers import sounds as notes
from lmms_eval.tasks.general_bench.readers.sounds import (
    Note,
    notes_of_midi,
    predicted_notes,
    read_notes,
)
from tests.cases import for_each
from tests.tasks.general_bench.measures.kit3d import END, an_item, midi_bytes, midi_note

TASK = "PopMusicGeneration"


def test_bars_of_four_beats_unless_told_otherwise():
    value = [[0, 1, 60], [3.99, 4, 62], [4, 5, 64.0], [12.5, 13, 65, 100]]
    assert read_notes(value) == (Note(0, 60), Note(0, 62), Note(1, 64), Note(3, 65))
    assert [note.bar for note in read_notes({"notes": value, "beats_per_bar": 3})] == [0, 1, 1, 4]


def test_time_signatures_of_a_midi_file_begin_new_bars():
    ons = (0, 383, 384, 500, 787, 788, 1076)
    midi = [(on, 60, on + 1) for on in ons], [(500, 3.0)], 96
    assert [note.bar for note in notes_of_midi(*midi)] == [0, 0, 1, 2, 2, 3, 4]


def test_each_signature_counts_from_the_bars_of_the_one_before():
    signatures = [(0, 4.0), (10, 2.0), (13, 4.0)]
    midi = [(on, 60, on) for on in (9, 10, 12, 13, 17)], signatures, 1
    assert [note.bar for note in notes_of_midi(*midi)] == [2, 3, 4, 5, 6]


def test_two_signatures_at_one_tick_and_far_away_ones():
    midi = [(2**60, 60, 2**60)], [(0, 3.0), (0, 4.0), (2**59, 4.0)], 1
    assert notes_of_midi(*midi)[0].bar == 2**58


def test_lists_and_files_of_predictions(tmp_path):
    (tmp_path / "p.mid").write_bytes(midi_bytes(midi_note(60) + midi_note(64, 100) + midi_note(65, 120) + END))
    item = an_item(tmp_path, TASK, form="notes")
    assert predicted_notes("p.mid", item) == (Note(0, 60), Note(0, 64), Note(1, 65))
    assert predicted_notes([[0, 1, 60]], item) == (Note(0, 60),)


def test_the_bounds_themselves_are_allowed():
    assert read_notes([[1e9, 1e9, 0], [0, 0, 127]]) == (Note(250_000_000, 0), Note(0, 127))
    for beats, bar in ((0.25, 8), (64, 0)):
        assert read_notes({"notes": [[2, 3, 60]], "beats_per_bar": beats})[0].bar == bar


@for_each(
    "value",
    [None, 3, [], {}, {"notes": []}, {"notes": [[0, 1, 60]], "beats_per_bar": 0}, [[0, 1]], ["x"], [[0, 1, "C"]],
     {"notes": [[0, 1, 60]], "beats_per_bar": "4"},
     {"notes": [[0, 1, 60]], "beats_per_bar": 0.2}, {"notes": [[0, 1, 60]], "beats_per_bar": 64.5},
     [[0, 1, 128]], [[0, 1, -1]], [[0, 1, 60.5]], [[2, 1, 60]],
     [[-1, 1, 60]], [[0, 1e300, 60]], [[float("nan"), 1, 60]], [[True, 1, 60]], [[0, 10**400, 60]],
     "none.mid", "bad.mid"],
)  # fmt: skip
def test_what_is_no_piece_counts_as_a_wrong_answer(tmp_path, value):
    (tmp_path / "bad.mid").write_bytes(b"MThd")
    with pytest.raises(UnreadableAnswer, match="item 7"):
        predicted_notes(value, an_item(tmp_path, TASK, form="notes"))


def test_the_number_of_notes_is_bounded(monkeypatch):
    monkeypatch.setattr(notes, "MAX_NOTES", 2)
    assert len(read_notes([[0, 1, 60]] * 2)) == len(notes_of_midi([(0, 60, 1)] * 2, [], 96)) == 2
    with pytest.raises(DataError, match="at most 2"):
        read_notes([[0, 1, 60]] * 3)
    with pytest.raises(DataError, match="more than 2"):
        notes_of_midi([(0, 60, 1)] * 3, [], 96)
