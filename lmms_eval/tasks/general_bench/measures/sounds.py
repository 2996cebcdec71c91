"""Measures of sounds and notes that need no network."""

from __future__ import annotations

from typing import Any

from lmms_eval.tasks.general_bench.items import Item, UnreadableAnswer
from lmms_eval.tasks.general_bench.measures.contract import Context, Measure, State, mean
from lmms_eval.tasks.general_bench.measures.seen import media_of
from lmms_eval.tasks.general_bench.measures.sound_math import (
    SAMPLING_RATE,
    mel_cepstral_distortion,
    pitch_class_consistency,
)
from lmms_eval.tasks.general_bench.readers.notes import predicted_notes
from lmms_eval.tasks.general_bench.readers.sounds import predicted_sound, reference_sound


def _distortion_state(prediction: Any, item: Item, context: Context) -> State:
    del context
    reference = reference_sound(item, SAMPLING_RATE)
    return mel_cepstral_distortion(
        predicted_sound(media_of(prediction), item, SAMPLING_RATE).samples, reference.samples
    )


def _consistency_state(prediction: Any, item: Item, context: Context) -> State:
    del context
    value = pitch_class_consistency(predicted_notes(prediction, item))
    if value is None:
        raise UnreadableAnswer(
            f"{item.where}: the piece has notes in one bar only: there is nothing to compare it with"
        )
    return 100 * value


MEASURES: tuple[Measure, ...] = (
    Measure(
        name="mcd",
        form="audio",
        state=_distortion_state,
        value=mean,
        checked="the warping against its series, sounds of known spectra; no recorded vectors",
    ),
    Measure(
        name="pitch_class_consistency",
        form="notes",
        state=_consistency_state,
        value=mean,
        is_mean=True,
        checked="hand-computed pieces, as JSON and as MIDI; no recorded vectors",
    ),
)
