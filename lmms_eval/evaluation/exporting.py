"""Options that libraries, scoring functions and worker processes read from the environment."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from lmms_eval.config import RunConfig

VARIABLES: Mapping[str, str] = MappingProxyType(
    {
        "media_root": "LMMS_EVAL_MEDIA_ROOT",
        "allow_media": "LMMS_EVAL_ALLOW_MEDIA",
        "datasets_cache": "HF_DATASETS_CACHE",
        "nltk_data": "NLTK_DATA",
        "geocode_table": "LMMS_EVAL_GEOCODE_TABLE",
        "geocoder": "LMMS_EVAL_GEOCODER",
        "judge_prompts": "LMMS_EVAL_JUDGE_PROMPTS",
        "human_scores": "LMMS_EVAL_HUMAN_SCORES",
    }
)
"""Option -> environment variable."""
_FILES = ("geocode_table", "judge_prompts", "human_scores")


@contextmanager
def exported(config: RunConfig) -> Iterator[None]:
    """Set the variables of the options that are given, and put the earlier values back at the end."""
    given = {variable: str(value) for name, variable in VARIABLES.items() if (value := getattr(config, name))}
    for name in _FILES:
        if VARIABLES[name] in given:
            given[VARIABLES[name]] = str(Path(given[VARIABLES[name]]).absolute())
    earlier = {variable: os.environ.get(variable) for variable in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for variable, value in earlier.items():
            if value is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = value
