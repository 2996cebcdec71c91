"""Sounds of predictions and references: mono samples at one rate, of limited length."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval.tasks.general_bench.items import Item
from lmms_eval.tasks.general_bench.readers.sides import prediction_of, reference_path, regular_file

if TYPE_CHECKING:
    from lmms_eval.media.audio import Audio

MAX_BYTES = 256 << 20
MAX_SECONDS = 1800.0


def predicted_sound(value: Any, item: Item, sampling_rate: int | None = None) -> Audio:
    """Read the sound file that a prediction names.

    Raises:
        UnreadableAnswer: it is missing, it is not a sound, or longer than half an hour.
    """
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

    return load_audio(str(regular_file(path, MAX_BYTES)), sampling_rate, max_seconds=MAX_SECONDS)
