"""Measures of sounds and notes that need no network."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from lmms_eval.tasks.general_bench.items import Item, UnreadableAnswer
from lmms_eval.tasks.general_bench.measures.contract import Context, Measure, State, mean
from lmms_eval.tasks.general_bench.measures.seen import media_of
from lmms_eval.tasks.general_bench.readers.sounds import predicted_notes, predicted_sound, reference_sound

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from lmms_eval.tasks.general_bench.readers.sounds import Note

    Floats = npt.NDArray[np.float64]

SAMPLING_RATE = 16_000
FRAME, HOP, FFT = 400, 80, 512
"""Samples of a frame (25 ms, Hann window), of a step (5 ms), and of the transform."""
ORDER = 24
WARP = 0.42
"""Coefficient of the all-pass that bends the frequency axis to nearly mel; the customary value at 16 kHz."""
_FLOOR = 1e-10
"""Least power of a frequency bin, so that silence has a spectrum too."""
_GRID = 4096
_CHUNK = 4096
PITCH_CLASSES = 12


def mel_cepstra(samples: npt.NDArray[np.floating]) -> Floats:
    """Return the mel-cepstral coefficients 0 to 24 of each frame, ``(frames, 25)``.

    The log amplitude spectrum is expanded in cosines of the warped frequency (Tokuda and others, 1994, without the
    iterative fit): ``log|S(w)| = sum c_m cos(m w~)``.

    Args:
        samples: ``(samples,)`` at 16 kHz; what is shorter than a frame is padded with zeros.
    """
    import numpy as np

    padded = np.zeros(max(len(samples), FRAME))
    padded[: len(samples)] = samples
    frames = np.lib.stride_tricks.sliding_window_view(padded, FRAME)[::HOP]
    window, expansion = np.hanning(FRAME + 1)[:-1], _expansion()
    found = np.empty((len(frames), ORDER + 1))
    for start in range(0, len(frames), _CHUNK):
        spectra = np.fft.rfft(frames[start : start + _CHUNK] * window, FFT)
        power = spectra.real**2 + spectra.imag**2
        found[start : start + _CHUNK] = np.log(np.maximum(power, _FLOOR)) / 2 @ expansion.T
    return found


def mel_cepstral_distortion(first: npt.NDArray[np.floating], second: npt.NDArray[np.floating]) -> float:
    """Return the mean over frames of ``10 / ln 10 * sqrt(2 * sum (c_m - c'_m)^2)``, m = 1 to 24, in dB.

    Frames are paired in order ("plain": no time warping). Frames of the longer sound without a partner do not count
    (General-Bench specification §5.1).

    Args:
        first: ``(samples,)`` at 16 kHz.
        second: the same.
    """
    import numpy as np

    frames = min(max(len(first), FRAME), max(len(second), FRAME))
    one, other = mel_cepstra(first[:frames]), mel_cepstra(second[:frames])
    distances = np.sqrt(2 * ((one[:, 1:] - other[:, 1:]) ** 2).sum(axis=1))
    return float(10 / math.log(10) * distances.mean())


def pitch_class_consistency(notes: Iterable[Note]) -> float | None:
    """Return the mean, over neighbouring bars, of the overlap of their pitch-class histograms, 0 to 1.

    A bar's histogram holds the shares of the notes that begin in it (C, C sharp, ... B). The overlap of two is the sum
    of the smaller shares. Bars without the beginning of a note are skipped. With fewer than two bars of notes it is
    ``None``.
    """
    bars: dict[int, list[int]] = {}
    for note in notes:
        bars.setdefault(note.bar, [0] * PITCH_CLASSES)[note.pitch % PITCH_CLASSES] += 1
    if len(bars) < 2:
        return None
    shares = [[count / sum(bars[bar]) for count in bars[bar]] for bar in sorted(bars)]
    overlaps = [math.fsum(map(min, before, after)) for before, after in pairwise(shares)]
    return math.fsum(overlaps) / len(overlaps)


@functools.cache
def _expansion() -> Floats:
    """Return the matrix from log amplitudes of a transform's bins to mel-cepstral coefficients, ``(25, bins)``.

    Bins give cosine coefficients of the plain frequency, and ``c_k = 2/pi * integral of log|S(w(w~))| cos(k w~) dw~``
    (half of it for k = 0) is computed as a sum over midpoints. The sum is exact, because the integrand is a finite sum
    of cosines that the grid resolves.
    """
    import numpy as np

    bins = FFT // 2 + 1
    cosines = np.fft.irfft(np.eye(bins), FFT, axis=1)[:, :bins].T  # (coefficient, bin)
    cosines[1:-1] *= 2
    warped = (np.arange(_GRID) + 0.5) * math.pi / _GRID
    plain = warped - 2 * np.arctan2(WARP * np.sin(warped), 1 + WARP * np.cos(warped))
    scale = np.full((ORDER + 1, 1), 2.0 / _GRID)
    scale[0] = 1.0 / _GRID
    onto = scale * np.cos(np.outer(np.arange(ORDER + 1), warped))
    matrix: Floats = onto @ np.cos(np.outer(plain, np.arange(bins))) @ cosines
    return matrix


def _distortion_state(prediction: Any, item: Item, _: Context) -> State:
    reference = reference_sound(item, SAMPLING_RATE)
    return mel_cepstral_distortion(
        predicted_sound(media_of(prediction), item, SAMPLING_RATE).samples, reference.samples
    )


def _consistency_state(prediction: Any, item: Item, _: Context) -> State:
    value = pitch_class_consistency(predicted_notes(prediction, item))
    if value is None:
        raise UnreadableAnswer(
            f"{item.where}: the piece has notes in one bar only: there is nothing to compare it with"
        )
    return 100 * value


MEASURES: tuple[Measure, ...] = (
    Measure(
        name="mcd", form="audio", state=_distortion_state, value=mean,
        checked="the warping against its series, sounds of known spectra; no recorded vectors",
    ),
    Measure(
        name="pitch_class_consistency", form="notes", state=_consistency_state, value=mean, is_mean=True,
        checked="hand-computed pieces, as JSON and as MIDI; no recorded vectors",
    ),
)  # fmt: skip
