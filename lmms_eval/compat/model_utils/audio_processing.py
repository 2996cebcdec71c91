"""Sounds as arrays: cutting into pieces, and another sampling rate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lmms_eval.compat.imports import require_package

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def split_audio(audio_arrays: Any, chunk_lim: int) -> list[Any]:
    """Cut a sound into consecutive pieces of ``chunk_lim`` samples. The last one may be shorter.

    A sound without samples gives no pieces, and so does a negative ``chunk_lim``.

    Raises:
        ValueError: ``chunk_lim`` is 0.
    """
    if chunk_lim == 0:
        raise ValueError("a sound cannot be cut into pieces of 0 samples: give chunk_lim a positive number")
    return [audio_arrays[start : start + chunk_lim] for start in range(0, len(audio_arrays), chunk_lim)]


def downsample_audio(audio_array: npt.NDArray[Any], original_sr: float, target_sr: float) -> npt.NDArray[np.floating]:
    """Resample a sound as ``librosa.resample`` does by default: soxr in high quality, along the last axis.

    Args:
        audio_array: ``(..., samples)``, floating-point.
        original_sr: samples per second of the input.
        target_sr: samples per second of the result.

    Returns:
        ``(..., ⌈samples · target_sr / original_sr⌉)``, of the same type.

    Raises:
        MissingOptionalDependencyError: the package soxr is not installed; librosa brings it.
    """
    import numpy as np

    if original_sr == target_sr:
        return audio_array
    require_package("soxr", feature="resampling of sounds")
    import soxr

    samples = audio_array.shape[-1]
    length = int(np.ceil(samples * float(target_sr) / original_sr))
    found = np.apply_along_axis(soxr.resample, -1, audio_array, original_sr, target_sr, quality="HQ")[..., :length]
    missing = [(0, 0)] * (found.ndim - 1) + [(0, length - found.shape[-1])]
    return np.asarray(np.pad(found, missing), dtype=audio_array.dtype)
