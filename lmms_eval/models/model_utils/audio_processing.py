"""Sounds as arrays, by the names that model plugins of the family import from here."""

from __future__ import annotations

from lmms_eval.compat.model_utils.audio_processing import downsample_audio as downsample_audio
from lmms_eval.compat.model_utils.audio_processing import split_audio as split_audio
