from __future__ import annotations

import importlib.util
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import MissingOptionalDependencyError
from lmms_eval.models.model_utils.audio_processing import downsample_audio, split_audio

HAS_SOXR = importlib.util.find_spec("soxr") is not None


@given(st.lists(st.floats(-1, 1), max_size=50), st.integers(1, 60))
def test_the_pieces_make_up_the_sound(samples: list[float], size: int) -> None:
    pieces = split_audio(np.array(samples), size)
    assert [value for piece in pieces for value in piece] == samples
    assert all(len(piece) == size for piece in pieces[:-1])


def test_pieces_of_no_samples() -> None:
    assert split_audio([1, 2], -1) == []
    with pytest.raises(ValueError, match="chunk_lim"):
        split_audio([1, 2], 0)


@pytest.mark.skipif(not HAS_SOXR, reason="the package soxr is not installed")
@pytest.mark.parametrize(("original", "target"), [(48_000, 16_000), (44_100, 16_000), (8_000, 16_000)])
def test_another_sampling_rate_keeps_the_tone(original: int, target: int) -> None:
    tone = np.sin(2 * np.pi * 440 * np.arange(original) / original).astype(np.float32)
    found = downsample_audio(tone, original, target)
    assert found.dtype == np.float32
    assert found.shape == (math.ceil(len(tone) * target / original),)
    wanted = np.sin(2 * np.pi * 440 * np.arange(target) / target)
    assert np.abs(found - wanted)[200:-200].max() < 1e-3  # the filter rings at both ends
    assert np.array_equal(downsample_audio(np.stack([tone, tone]), original, target), np.stack([found, found]))


def test_the_same_rate_changes_nothing() -> None:
    sound = np.zeros(5)
    assert downsample_audio(sound, 16_000, 16_000) is sound


@pytest.mark.skipif(HAS_SOXR, reason="the package soxr is installed")
def test_without_the_package_it_says_how_to_get_it() -> None:
    with pytest.raises(MissingOptionalDependencyError, match="pip install soxr"):
        downsample_audio(np.zeros(5), 48_000, 16_000)
