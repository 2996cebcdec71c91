import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.readers.sounds import read_midi
from tests.tasks.general_bench.measures.kit3d import END, midi_bytes, midi_note


@pytest.fixture
def read(tmp_path):
    def reading(content):
        (tmp_path / "a.mid").write_bytes(content)
        return read_midi(tmp_path / "a.mid")

    return reading


def test_notes_of_all_tracks_with_their_ticks(read):
    notes, signatures, ticks = read(midi_bytes(midi_note(60) + midi_note(64, 4) + END, midi_note(67, 10) + END))
    assert notes == [(0, 60, 96), (10, 67, 106), (100, 64, 196)]
    assert (ticks, signatures) == (96, [])


def test_running_status_long_deltas_and_silent_on_as_off(read):
    running = b"\x00\x90\x3c\x40" + b"\x60\x3c\x00" + b"\x81\x00\x3e\x40" + b"\x60\x3e\x00"
    assert read(midi_bytes(running + END))[0] == [(0, 60, 96), (224, 62, 320)]


def test_other_events_and_chunks_are_passed_over(read):
    other = (
        b"\x00\xc0\x05"
        + b"\x00\xd0\x05"
        + b"\x00\xa0\x3c\x05"
        + b"\x00\xe0\x00\x40"
        + b"\x00\xb0\x07\x64"
        + b"\x00\xf0\x03\x01\x02\xf7"
    )
    other += b"\x00\xff\x51\x03\x07\xa1\x20" + b"\x00\xff\x58\x04\x06\x03\x18\x08"
    content = midi_bytes(other + midi_note(60) + END)
    split = content.index(b"MTrk")
    notes, signatures, _ = read(content[:split] + b"XFIH" + (3).to_bytes(4) + b"abc" + content[split:])
    assert notes == [(0, 60, 96)]
    assert signatures == [(0, 3.0)]


def test_the_shortest_time_signature_and_deltas_of_two_bytes(read):
    notes, signatures, _ = read(midi_bytes(b"\x81\x00\xff\x58\x02\x04\x07" + midi_note(60) + END))
    assert signatures == [(128, 0.125)]
    assert notes == [(128, 60, 224)]


def test_drums_have_no_pitch_and_a_note_without_end_lasts_to_the_end(read):
    notes, *_ = read(midi_bytes(midi_note(35, channel=9) + b"\x00\x90\x3c\x40" + b"\x20\xff\x2f\x00"))
    assert notes == [(96, 60, 128)]


def test_the_same_key_twice_ends_in_order(read):
    on, off = b"\x0a\x90\x3c\x40", b"\x0a\x80\x3c\x00"
    assert read(midi_bytes(on + on + off + off + END))[0] == [(10, 60, 30), (20, 60, 40)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"RIFF", "does not begin with MThd"),
        (b"MThd" + (4).to_bytes(4) + b"abcd", "head of 4 bytes"),
        (b"MThd" + (2**32 - 1).to_bytes(4), "head of"),
        (midi_bytes(END, kind=2), "format 2"),
        (midi_bytes(END, division=0xE728), "timed in frames"),
        (midi_bytes(END, division=0), "timed in frames"),
        (midi_bytes(END, claimed=3), "middle of an event"),
        (midi_bytes(b"\x00\x3c\x40"), "running status broken"),
        (midi_bytes(b"\x00\x90\x3c\x40\x00\xf0\x01\xf7\x00\x3c\x00" + END), "running status broken"),
        (midi_bytes(b"\x00\x90\x3c\x90" + END), "status where data should be"),
        (midi_bytes(b"\xff\xff\xff\xff\x00"), "longer than four bytes"),
        (midi_bytes(b"\x00\xf8" + END), "status 0xf8"),
        (midi_bytes(b"\x00\xff\x58\x02\x00\x02" + END), "time signature"),
        (midi_bytes(b"\x00\xff\x58\x02\x04\x08" + END), "time signature"),
        (midi_bytes(b"\x00\xff\x58\x01\x04" + END), "time signature"),
        (midi_bytes(b"\x00\xff\x01\xff\xff\xff\x7f"), "middle of an event"),
        (midi_bytes(END)[:-6] + b"\x7f\xff\xff\xff" + END, "ends before its track"),
        (midi_bytes(b"\x00\x90\x3c") + b"\x40", "beyond its track"),
        (midi_bytes(END)[:14] + b"\x00\x01\x02\x03" + END, "something else than a chunk"),
    ],
)
def test_damaged_files_are_refused(read, content, message):
    with pytest.raises(DataError, match=message):
        read(content)


@given(st.integers(0, 10**9))
def test_damage_of_any_kind_is_a_data_error_or_read(tmp_path_factory, seed):
    source = random.Random(seed)
    content = bytearray(midi_bytes(midi_note(60) + midi_note(64, 4) + END, midi_note(67, 10) + END))
    for _ in range(source.randint(1, 6)):
        content[source.randrange(len(content))] = source.randrange(256)
    path = tmp_path_factory.getbasetemp() / "fuzz.mid"
    path.write_bytes(bytes(content[: source.randint(1, len(content))]))
    try:
        notes, _, _ = read_midi(path)
    except DataError:
        return
    assert all(0 <= start <= end and 0 <= pitch <= 127 for start, pitch, end in notes)
