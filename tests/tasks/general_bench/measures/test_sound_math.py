import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks.general_bench.measures.sounds import (
    FFT,
    ORDER,
    WARP,
    _expansion,
    mel_cepstra,
    mel_cepstral_distortion,
    pitch_class_consistency,
)
from lmms_eval.tasks.general_bench.readers.sounds import Note
from tests.cases import for_each

SEEDS = st.integers(0, 2**32 - 1)


def noise(seed, count=4000):
    return np.random.default_rng(seed).normal(0, 0.2, count)


def test_warping_a_cosine_gives_the_series_of_the_all_pass():
    """z^-1 = (y + a) / (1 + a y) with y = z~^-1 is a + (1 - a^2) y - a (1 - a^2) y^2 + ..."""
    frequencies = np.arange(FFT // 2 + 1) * 2 * math.pi / FFT
    found = _expansion() @ np.cos(frequencies)
    series = [WARP, *((1 - WARP**2) * (-WARP) ** k for k in range(ORDER))]
    assert found == pytest.approx(series, abs=1e-12)


def test_a_flat_spectrum_has_only_its_level():
    click = np.zeros(400)
    click[200] = 0.5  # the window is 1 there
    cepstra = mel_cepstra(click)
    assert cepstra.shape == (1, ORDER + 1)
    assert cepstra[0, 0] == pytest.approx(math.log(0.5))
    assert np.abs(cepstra[0, 1:]).max() < 1e-10


def test_a_known_difference_of_spectra():
    """x(n) + a x(n - 1) for a click has log|1 + a e^-jw| = sum -(-a)^m / m cos(mw) more: known coefficients."""
    click, echo = np.zeros(400), np.zeros(400)
    click[200], echo[200], echo[201] = 1, 1, 0.5 / np.hanning(401)[201]
    plain = [0.0, *(-((-0.5) ** m) / m for m in range(1, FFT // 2 + 1))]
    frequencies = np.arange(FFT // 2 + 1) * 2 * math.pi / FFT
    spectrum = sum(c * np.cos(m * frequencies) for m, c in enumerate(plain))
    warped = (_expansion() @ spectrum)[1:]
    expected = 10 / math.log(10) * math.sqrt(2 * float(np.sum(warped**2)))
    assert mel_cepstral_distortion(click, echo) == pytest.approx(expected, rel=1e-9)


@given(SEEDS, SEEDS)
def test_a_distance_that_loudness_does_not_change(one, other):
    first, second = 1000 * noise(one), 1000 * noise(other)  # so loud that no amplitude is below the floor
    assert mel_cepstral_distortion(first, first) == 0
    assert mel_cepstral_distortion(first, second) == pytest.approx(mel_cepstral_distortion(second, first))
    assert mel_cepstral_distortion(first, 0.3 * first) == pytest.approx(0, abs=1e-6)
    assert mel_cepstral_distortion(0.5 * first, second) == pytest.approx(mel_cepstral_distortion(first, second))


def test_the_longer_sound_is_cut():
    first, second = noise(1, 4000), noise(2, 9000)
    assert mel_cepstral_distortion(first, second) == mel_cepstral_distortion(first, second[:4000])


def test_short_and_silent_sounds():
    assert mel_cepstra(np.zeros(1)).shape == (1, ORDER + 1)
    assert mel_cepstral_distortion(np.zeros(3), np.zeros(9000)) == 0
    assert 0 < mel_cepstral_distortion(noise(1), np.zeros(4000)) < 1000
    assert mel_cepstra(noise(1, 400 + 80 * 5000)).shape == (5001, ORDER + 1)


def notes(*bars):
    return [Note(bar, pitch) for bar, pitches in enumerate(bars) for pitch in pitches]


@for_each(
    ("bars", "expected"),
    [
        (([60, 64], [72, 76]), 1),
        (([60], [61]), 0),
        (([60, 60, 62, 64], [60, 62]), 0.75),
        (([60], [], [60, 62]), 0.5),
        (([60], [60], [62]), 0.5),
    ],
)
def test_overlap_of_neighbouring_bars(bars, expected):
    assert pitch_class_consistency(notes(*bars)) == pytest.approx(expected)


def test_one_bar_has_no_neighbour():
    assert pitch_class_consistency([]) is None
    assert pitch_class_consistency(notes([60, 61])) is None


@given(st.lists(st.builds(Note, st.integers(0, 9), st.integers(0, 127)), max_size=60), st.integers(0, 11))
def test_a_share_that_transposing_and_order_do_not_change(piece, up):
    found = pitch_class_consistency(piece)
    assert found is None or 0 <= found <= 1
    moved = [Note(note.bar, note.pitch + up) for note in reversed(piece)]
    assert found is None or pitch_class_consistency(moved) == pytest.approx(found)
