from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.measures.pixels import (
    LEAST_SIDE,
    PEAK,
    absolute_difference,
    mean_squared_error,
    ms_ssim,
    psnr,
    roc_auc,
    similarity,
)
from tests.tasks.general_bench.readers.pixel_files import noise


def smooth(height: int, width: int) -> np.ndarray:
    y, x = np.mgrid[:height, :width]
    return np.round(127 + 60 * np.sin(x / 9) + 60 * np.cos(y / 13)).astype(np.uint8)


def spoilt(picture: np.ndarray, strength: float) -> np.ndarray:
    drawn = np.random.default_rng(7).normal(0, strength, picture.shape)
    return np.clip(picture + drawn, 0, 255).astype(np.uint8)


def test_errors_of_bytes_do_not_wrap_and_take_all_rows():
    first, second = np.zeros((300, 2, 3), np.uint8), np.full((300, 2, 3), 255, np.uint8)
    assert mean_squared_error(first, second) == 255**2
    assert absolute_difference(first, second) == 255 * 1800
    second[0] = 0
    assert absolute_difference(first, second) == 255 * 1794


@given(seed=st.integers(0, 2**32 - 1), shape=st.tuples(st.integers(1, 9), st.integers(1, 9)))
def test_errors_are_those_of_numpy(seed, shape):
    first, second = noise(seed, *shape), noise(seed + 1, *shape)
    apart = first.astype(float) - second
    assert mean_squared_error(first, second) == pytest.approx(np.mean(apart**2))
    assert absolute_difference(first, second) == pytest.approx(np.sum(np.abs(apart)))
    assert mean_squared_error(first, second) == mean_squared_error(second, first)


def test_psnr_of_known_errors():
    assert psnr(255.0**2) == 0
    assert psnr(1.0) == pytest.approx(48.1308036)
    assert psnr(0.0) == math.inf


def whole_ssim(first: np.ndarray, second: np.ndarray) -> float:
    return similarity(first, second, PEAK)[0]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), shape=st.tuples(st.integers(11, 40), st.integers(11, 40)))
def test_ssim_is_one_of_itself_symmetric_and_bounded(seed, shape):
    first, second = noise(seed, *shape), noise(seed + 1, *shape)
    assert whole_ssim(first, first) == pytest.approx(1)
    assert whole_ssim(first, second) == pytest.approx(whole_ssim(second, first))
    assert -1 <= whole_ssim(first, second) < 0.5


def test_ssim_of_flat_pictures_is_their_luminance():
    first, second = np.full((20, 20), 100.0), np.full((20, 20), 150.0)
    stable = (0.01 * 255) ** 2
    assert whole_ssim(first, second) == pytest.approx((2 * 100 * 150 + stable) / (100**2 + 150**2 + stable))


def test_ssim_falls_with_noise_and_is_negative_for_the_negative():
    picture = smooth(64, 80)
    values = [whole_ssim(spoilt(picture, strength), picture) for strength in (0, 5, 20, 60)]
    assert values == sorted(values, reverse=True)
    assert whole_ssim(255 - noise(1, 64, 64), noise(1, 64, 64)) < -0.5


@dataclass(frozen=True)
class Direct:
    """Means over all windows, each computed for itself, as the definition says."""

    whole: float
    contrast: float


def direct(first: np.ndarray, second: np.ndarray) -> Direct:
    offsets = np.arange(11) - 5
    weights = np.exp(-(offsets[:, None] ** 2 + offsets[None, :] ** 2) / (2 * 1.5**2))
    weights /= weights.sum()
    a, b = (np.lib.stride_tricks.sliding_window_view(one.astype(float), (11, 11)) for one in (first, second))
    mean_a, mean_b = ((weights * one).sum(axis=(2, 3)) for one in (a, b))
    apart_a, apart_b = a - mean_a[..., None, None], b - mean_b[..., None, None]
    spread = (weights * (apart_a**2 + apart_b**2)).sum(axis=(2, 3))
    shared = (weights * apart_a * apart_b).sum(axis=(2, 3))
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    contrast = (2 * shared + c2) / (spread + c2)
    luminance = (2 * mean_a * mean_b + c1) / (mean_a**2 + mean_b**2 + c1)
    return Direct(float((contrast * luminance).mean()), float(contrast.mean()))


def halved(picture: np.ndarray) -> np.ndarray:
    height, width = (side // 2 for side in picture.shape)
    return picture[: 2 * height, : 2 * width].astype(float).reshape(height, 2, width, 2).mean(axis=(1, 3))


def test_ssim_is_the_mean_over_all_windows():
    picture = smooth(150, 16)
    worse = spoilt(picture, 25)
    assert whole_ssim(worse, picture) == pytest.approx(direct(worse, picture).whole, rel=1e-9)


def test_ms_ssim_is_the_weighted_product_over_five_scales():
    first, second = smooth(177, 181), spoilt(smooth(177, 181), 30)
    found, expected = ms_ssim(first, second), 1.0
    for weight in (0.0448, 0.2856, 0.3001, 0.2363):
        expected *= direct(first, second).contrast ** weight
        first, second = halved(first), halved(second)
    expected *= direct(first, second).whole ** 0.1333
    assert found == pytest.approx(expected, rel=1e-6)
    assert 0.5 < found < 0.95


def test_ms_ssim_is_one_of_itself_and_falls_with_noise():
    picture = smooth(180, 190)
    values = [ms_ssim(spoilt(picture, strength), picture) for strength in (0, 10, 40)]
    assert values[0] == pytest.approx(1)
    assert values == sorted(values, reverse=True)


def test_ms_ssim_of_a_negative_is_zero():
    picture = noise(1, LEAST_SIDE, LEAST_SIDE)
    assert ms_ssim(255 - picture, picture) == 0


@pytest.mark.filterwarnings("ignore")
def test_ms_ssim_agrees_with_torchmetrics():
    """But for the borders: there pictures are mirrored at them."""
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("torchmetrics.functional.image")
    picture = smooth(181, 203)
    worse = spoilt(picture, 30)
    tensors = [torch.tensor(one[None, None], dtype=torch.float64) for one in (worse, picture)]
    scaled = float(functional.multiscale_structural_similarity_index_measure(*tensors, data_range=255.0))
    assert ms_ssim(worse, picture) == pytest.approx(scaled, rel=5e-4)


def test_pictures_too_small_or_of_two_sizes_are_refused():
    with pytest.raises(DataError, match="at least 11 pixels"):
        whole_ssim(noise(1, 10, 40), noise(1, 10, 40))
    with pytest.raises(DataError, match="at least 176 pixels"):
        ms_ssim(noise(1, 175, 400), noise(1, 175, 400))
    for error in (mean_squared_error, absolute_difference):
        with pytest.raises(DataError, match="cannot be compared"):
            error(noise(1, 2, 3), noise(1, 3, 2))


def test_roc_of_perfect_useless_and_inverted_scores():
    assert roc_auc([0, 0, 5], [3, 1, 0]) == 1
    assert roc_auc([0, 5, 0], [0, 9, 0]) == 0.5
    assert roc_auc([4, 0], [0, 2]) == 0


@given(
    pixels=st.lists(st.tuples(st.integers(0, 15), st.booleans()), min_size=2, max_size=60).filter(
        lambda found: len({label for _, label in found}) == 2
    )
)
def test_roc_agrees_with_scikit_learn(pixels):
    metrics = pytest.importorskip("sklearn.metrics")
    scores, labels = zip(*pixels, strict=True)
    counts = [[sum(one == (score, label) for one in pixels) for score in range(16)] for label in (True, False)]
    assert roc_auc(*counts) == pytest.approx(metrics.roc_auc_score(labels, scores))


def test_a_roc_needs_both_classes():
    for counts in (([0, 0], [1, 2]), ([1, 2], [0, 0])):
        with pytest.raises(DataError, match="both positive and negative"):
            roc_auc(*counts)
