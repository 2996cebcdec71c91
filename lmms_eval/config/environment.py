"""Environment variables that set defaults of options. No other module reads such variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from lmms_eval.config.options import options

WITHOUT_EFFECT: Mapping[str, str] = {
    "LMMS_LOCAL_CACHE": "nothing is copied from a local scratch folder: answers are written where they stay; "
    "--use_cache names the folder of the response cache",
    "LMMS_CACHE_RUN_ID": "an interrupted run is found again by its content, in --output_path",
    "LMMS_CACHE_CHECKPOINT_INTERVAL": "every answer is written as it comes",
    "LM_HARNESS_CACHE_PATH": "requests are built anew by every run; there is no cache of them",
    "LMMS_IMAGE_PATH_CACHE_MAX_ITEMS": "encoded pictures are kept by their size in memory, not by their number",
    "LMMS_VIDEO_DECODE_BACKEND": "videos are always decoded by this package, with PyAV",
    "LMMS_VIDEO_DECORD_THREADS": "videos are decoded with PyAV; --media_workers sets how many at a time",
    "LMMS_VIDEO_TORCHCODEC_*": "videos are decoded with PyAV; --media_workers sets how many at a time",
    "LMMS_VIDEO_DALI_*": "videos are decoded with PyAV, on the processor; --media_workers sets how many at a time",
    "LMMS_WATCHDOG_DIR": "requests that hang are reported in the log and in the run's own folder (hung.jsonl)",
}
"""Patterns of known environment variables that have no effect in this package, with the reasons."""


class EnvironmentDefault(NamedTuple):
    """Default of an option that an environment variable sets."""

    variable: str
    text: str


def environment_defaults(environ: Mapping[str, str]) -> dict[str, EnvironmentDefault]:
    """Return defaults by option name. The first of an option's variables that is set and not empty counts."""
    found: dict[str, EnvironmentDefault] = {}
    for option in options():
        for variable in reversed(option.variables):
            if text := environ.get(variable, "").strip():
                folder = os.path.join(text, "datasets") if variable == "HF_HOME" else text
                found[option.name] = EnvironmentDefault(variable, folder)
    return found


def variables_without_effect(environ: Mapping[str, str]) -> list[str]:
    """Return a line for each known variable that is set but has no effect."""
    return [
        f"the environment variable {name} has no effect here: {reason}"
        for name in sorted(environ)
        for pattern, reason in WITHOUT_EFFECT.items()
        if fnmatchcase(name, pattern) and environ[name].strip()
    ]
