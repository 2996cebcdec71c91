"""Notes of a piece with the bars in which they begin, from JSON lists and MIDI files."""

from __future__ import annotations

import itertools
import math
from typing import Any

from msgspec import Struct

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import Item
from lmms_eval.tasks.general_bench.readers.midi import Midi, Signature, read_midi
from lmms_eval.tasks.general_bench.readers.sides import prediction_of

MAX_NOTES = 200_000
BEATS_PER_BAR = 4.0
_LATEST = 1e9


class Note(Struct, frozen=True):
    """A note: ``bar`` counts from 0, ``pitch`` is a MIDI number (0 to 127; 60 is middle C)."""

    bar: int
    pitch: int


def predicted_notes(value: Any, item: Item) -> tuple[Note, ...]:
    """Read the notes of a prediction: the path of a MIDI file, a list of ``[start, end, pitch]`` with times in beats
    (quarter notes) and bars of four beats, or ``{"notes": [...], "beats_per_bar": 3}``.

    Raises:
        UnreadableAnswer: another format, damaged, or without a note.
    """
    side = prediction_of(item)
    with side.reading():
        notes = notes_of_midi(read_midi(side.path(value))) if isinstance(value, str) else read_notes(value)
        if not notes:
            raise DataError("the piece has no notes")
        return notes


def read_notes(value: Any) -> tuple[Note, ...]:
    """Read the notes of a JSON value.

    Raises:
        DataError: it is not in one of the forms, or has more than 200,000 notes.
    """
    beats: Any = BEATS_PER_BAR
    if isinstance(value, dict):
        value, beats = value.get("notes"), value.get("beats_per_bar", BEATS_PER_BAR)
    if not isinstance(value, list) or len(value) > MAX_NOTES:
        raise DataError(f"notes must be a list of at most {MAX_NOTES} entries [start, end, pitch]")
    if not _is_number(beats) or not 0.25 <= beats <= 64:
        raise DataError(f"a bar of {beats!r:.40} beats: 0.25 to 64 are possible")
    found: list[Note] = []
    for entry in value:
        if not isinstance(entry, list) or len(entry) < 3 or not all(_is_number(number) for number in entry[:3]):
            raise DataError(f"the note {entry!r:.80} is not [start, end, pitch]")
        start, end, pitch = entry[:3]
        if not 0 <= start <= end <= _LATEST:
            raise DataError(f"the note {entry!r:.80}: 0 <= start <= end is needed, in beats")
        if not 0 <= pitch <= 127 or pitch != int(pitch):
            raise DataError(f"the note {entry!r:.80}: its pitch is no MIDI number from 0 to 127")
        found.append(Note(int(start // beats), int(pitch)))
    return tuple(found)


def notes_of_midi(midi: Midi) -> tuple[Note, ...]:
    """Return the notes of a MIDI file with bars by its time signatures (four quarter notes by default).

    A time signature begins a new bar.

    Raises:
        DataError: more than 200,000 notes.
    """
    if len(midi.notes) > MAX_NOTES:
        raise DataError(f"more than {MAX_NOTES} notes")
    signatures = list(midi.signatures)
    if not signatures or signatures[0].tick > 0:
        signatures.insert(0, Signature(0, BEATS_PER_BAR))
    firsts = [0]  # number of the bar that each signature begins
    for before, after in itertools.pairwise(signatures):
        firsts.append(firsts[-1] + math.ceil((after.tick - before.tick) / (before.beats * midi.ticks_per_beat)))
    found, part = [], 0
    for note in midi.notes:  # in order of their starts
        while part + 1 < len(signatures) and signatures[part + 1].tick <= note.start:
            part += 1
        ticks = signatures[part].beats * midi.ticks_per_beat
        found.append(Note(firsts[part] + int((note.start - signatures[part].tick) // ticks), note.pitch))
    return tuple(found)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LATEST
