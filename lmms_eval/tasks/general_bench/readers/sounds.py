"""Sounds as mono samples at one rate, and notes from JSON lists and Standard MIDI Files (formats 0 and 1).

Reading of MIDI is strict: a damaged file is an error. It is done here because mido (1.3) refuses chunks of other kinds
and takes 15 s for a number of 400 kB (quadratic in its length), and symusic (0.6) accepts damaged files.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import Item
from lmms_eval.tasks.general_bench.readers.sides import prediction_of, reference_path, regular_file

if TYPE_CHECKING:
    from lmms_eval.media.audio import Audio


MAX_BYTES = 4 << 20
_MAX_TRACKS = 1024
_DRUMS = 9
"""Channel 10. Its keys are instruments, not pitches."""
_TIME_SIGNATURE, _END_OF_TRACK = 0x58, 0x2F
_DATA_BYTES = {0x8: 2, 0x9: 2, 0xA: 2, 0xB: 2, 0xC: 1, 0xD: 1, 0xE: 2}
"""Number of data bytes of a channel's message, by its upper four bits."""


MidiNote = tuple[int, int, int]
"""Start of a note in ticks, its MIDI number, and its end in ticks."""
Signature = tuple[int, float]
"""A time signature: from this tick on, a bar has so many quarter notes."""


class _Reader(Struct):
    """Reads the events of a file, of all tracks but those of drums."""

    data: bytes
    where: str
    at: int = 0
    notes: list[MidiNote] = field(default_factory=list)
    signatures: list[Signature] = field(default_factory=list)
    tick: int = 0
    """In the current track."""
    status: int = 0
    """Running status, or 0."""
    sounding: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    """Starts of the notes that are on, by channel and key."""

    def take(self, count: int) -> bytes:
        piece = self.data[self.at : self.at + count]
        if len(piece) < count:
            raise self.error("ends in the middle of an event")
        self.at += count
        return piece

    def byte(self) -> int:
        return self.take(1)[0]

    def length(self) -> int:
        """Read a number of one to four bytes, seven bits each."""
        value = 0
        for _ in range(4):
            byte = self.byte()
            value = value << 7 | byte & 0x7F
            if byte < 0x80:
                return value
        raise self.error("has a number longer than four bytes")

    def error(self, what: str) -> DataError:
        return DataError(f"{self.where} is no readable MIDI file: it {what} (byte {self.at})")

    def track(self) -> None:
        """Read the next track, skipping chunks of other kinds before it."""
        while (mark := self.take(4)) != b"MTrk":
            if not mark.isalnum():
                raise self.error("has something else than a chunk where a track should begin")
            self.take(int.from_bytes(self.take(4)))
        size = int.from_bytes(self.take(4))
        end = self.at + size
        if end > len(self.data):
            raise self.error("ends before its track does")
        self.tick = self.status = 0
        self.sounding.clear()
        while self.at < end:
            self.tick += self.length()
            if not self.event():
                break
        if self.at > end:
            raise self.error("has an event that reaches beyond its track")
        self.at = end
        for (_, key), starts in self.sounding.items():
            self.notes += ((start, key, self.tick) for start in starts)

    def event(self) -> bool:
        """Read one event. Return false at the end of the track."""
        first = self.byte()
        if first >= 0xF0:
            self.status = 0
            return self.other(first)
        if first >= 0x80:
            self.status = first
            values = self.take(_DATA_BYTES[first >> 4])
        elif self.status:
            values = bytes((first,)) + self.take(_DATA_BYTES[self.status >> 4] - 1)
        else:
            raise self.error("has data without a status before it (running status broken)")
        if max(values) > 0x7F:
            raise self.error("has a status where data should be")
        kind, channel = self.status >> 4, self.status & 0xF
        if kind in (0x8, 0x9) and channel != _DRUMS:
            starts = self.sounding.setdefault((channel, values[0]), [])
            if kind == 0x9 and values[1] > 0:
                starts.append(self.tick)
            elif starts:
                self.notes.append((starts.pop(0), values[0], self.tick))
        return True

    def other(self, first: int) -> bool:
        if first in (0xF0, 0xF7):  # messages of a maker
            self.take(self.length())
            return True
        if first != 0xFF:
            raise self.error(f"has the status {first:#x}, which no file may hold")
        kind = self.byte()
        content = self.take(self.length())
        if kind == _TIME_SIGNATURE:
            if len(content) < 2 or not content[0] or content[1] > 7:
                raise self.error("has an invalid time signature")
            self.signatures.append((self.tick, content[0] * 4 / 2 ** content[1]))
        return kind != _END_OF_TRACK


def read_midi(path: Path) -> tuple[list[MidiNote], list[Signature], int]:
    """Read the notes and time signatures of a ``.mid`` file, and the ticks of a quarter note.

    A note without an end lasts to the end of its track. Raises ``DataError`` if it is larger than 4 MiB, of format 2,
    timed in frames in place of beats, or damaged.
    """
    reader = _Reader(regular_file(path, MAX_BYTES).read_bytes(), str(path))
    if reader.data[:4] != b"MThd":
        raise reader.error("does not begin with MThd")
    reader.at = 4
    size = int.from_bytes(reader.take(4))
    head = reader.take(size) if 6 <= size <= 64 else b""
    kind, tracks, division = (int.from_bytes(head[at : at + 2]) for at in (0, 2, 4))
    if not head or kind not in (0, 1) or not 1 <= tracks <= _MAX_TRACKS:
        raise reader.error(f"has a head of {size} bytes, format {kind}, {tracks} tracks")
    if not 0 < division < 0x8000:
        raise reader.error("is timed in frames, so that it has no bars")
    for _ in range(tracks):
        reader.track()
    return sorted(reader.notes), sorted(reader.signatures, key=lambda signature: signature[0]), division


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

    Raises ``UnreadableAnswer`` for another format, a damaged file, or no note.
    """
    side = prediction_of(item)
    with side.reading():
        notes = notes_of_midi(*read_midi(side.path(value))) if isinstance(value, str) else read_notes(value)
        if not notes:
            raise DataError("the piece has no notes")
        return notes


def read_notes(value: Any) -> tuple[Note, ...]:
    """Read the notes of a JSON value. Raises ``DataError`` for another form, or more than 200,000 notes."""
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


def notes_of_midi(notes: Sequence[MidiNote], signatures: Sequence[Signature], ticks_per_beat: int) -> tuple[Note, ...]:
    """Return the notes of ``read_midi`` with bars by the time signatures (four quarter notes by default).

    A time signature begins a new bar. Raises ``DataError`` for more than 200,000 notes.
    """
    if len(notes) > MAX_NOTES:
        raise DataError(f"more than {MAX_NOTES} notes")
    if not signatures or signatures[0][0] > 0:
        signatures = [(0, BEATS_PER_BAR), *signatures]
    firsts = [0]  # number of the bar that each signature begins
    for (tick, beats), (following, _) in itertools.pairwise(signatures):
        firsts.append(firsts[-1] + math.ceil((following - tick) / (beats * ticks_per_beat)))
    found, part = [], 0
    for start, pitch, _ in notes:  # in order of their starts
        while part + 1 < len(signatures) and signatures[part + 1][0] <= start:
            part += 1
        tick, beats = signatures[part]
        found.append(Note(firsts[part] + int((start - tick) // (beats * ticks_per_beat)), pitch))
    return tuple(found)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LATEST


MAX_SOUND_BYTES = 256 << 20
MAX_SECONDS = 1800.0


def predicted_sound(value: Any, item: Item, sampling_rate: int | None = None) -> Audio:
    """Read the sound that a prediction names. Raises ``UnreadableAnswer`` if it is missing, no sound, or too long."""
    side = prediction_of(item)
    with side.reading():
        return read_sound(side.path(value), sampling_rate)


def reference_sound(item: Item, sampling_rate: int | None = None) -> Audio:
    """Read the sound of an item's reference.

    Raises:
        DataError: the reference is no path, or no usable file.
        MediaError: the file is missing, or no sound.
    """
    return read_sound(reference_path(item.reference, item), sampling_rate)


def read_sound(path: Path, sampling_rate: int | None = None) -> Audio:
    """Read mono samples of a sound file (or of a video's sound track), at ``sampling_rate`` if it is given.

    Raises:
        DataError: no regular file, empty, or larger than 256 MiB.
        MediaError: no sound, or longer than half an hour.
    """
    from lmms_eval.media.audio import load_audio

    return load_audio(str(regular_file(path, MAX_SOUND_BYTES)), sampling_rate, max_seconds=MAX_SECONDS)
