"""Frames and sizes by the rules of model families; the recorded ones are in ``tests/parity``."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval.media.frame_rules import QwenVideo, frames_by_rate, inner_frames, middle_frames, smart_size
from tests.cases import for_each


@settings(deadline=None, max_examples=100)
@given(st.integers(1, 4000), st.integers(1, 4000), st.sampled_from([28, 32]))
def test_sides_are_multiples_and_pixels_within_the_limits(height: int, width: int, factor: int) -> None:
    low, high = 4 * factor * factor, 4096 * factor * factor
    tall, wide = smart_size(height, width, factor, low, high)
    assert tall % factor == wide % factor == 0
    assert tall * wide >= low
    if max(height, width) < 60 * min(height, width):  # a side has one step at least
        assert tall * wide <= high


BAD = {"no height": (0, 9, 28, 1, 9), "no factor": (9, 9, 0, 1, 9), "limits in the wrong order": (9, 9, 28, 9, 1)}


@for_each("height, width, factor, low, high", BAD.values(), ids=BAD)
def test_bad_sizes(height: int, width: int, factor: int, low: int, high: int) -> None:
    with pytest.raises(ValueError, match="cannot fit"):
        smart_size(height, width, factor, low, high)


def test_frames_of_qwen_are_even_and_within_the_video() -> None:
    limits = QwenVideo(max_frames=512)
    assert limits.count(100, 25.0) == 8
    assert limits.count(3, 25.0) == 2
    assert limits.indices(10, 1.0) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    for frames, rate in ((1, 25.0), (10, 0.0), (10, float("nan"))):
        with pytest.raises(ValueError, match="cannot take two frames or more"):
            limits.count(frames, rate)


def test_more_frames_get_fewer_pixels_each() -> None:
    limits = QwenVideo(max_frames=512, min_pixels=3584, max_pixels=401408, total_pixels=24576 * 28 * 28)
    assert limits.size(30, 720, 1280) == (448, 832)
    assert limits.size(512, 720, 1280) == (192, 352)
    assert limits.tokens(512, 720, 1280) == 16896


def test_other_choices_of_frames() -> None:
    assert inner_frames(450, 8) == [50, 100, 150, 200, 250, 300, 350, 400]
    assert frames_by_rate(450, 30.0, 0.5) == [0, 60, 120, 180, 240, 300, 360]
    assert frames_by_rate(7, 25.0, 1.0) == []
    assert middle_frames(450, 4) == [56, 168, 280, 393]
    assert middle_frames(450, 2, 30.0, (1.0, 3.0)) == [45, 75]
