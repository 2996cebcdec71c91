"""Environment for code that is not ours and reads nothing else: libraries, and task files of the family."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from lmms_eval.config import RunConfig

VARIABLES: Mapping[str, str] = MappingProxyType(
    {
        "datasets_cache": "HF_DATASETS_CACHE",  # the package datasets, also in the processes that it starts
        "nltk_data": "NLTK_DATA",  # the package nltk, as task files use it
        "media_root": "LMMS_EVAL_MEDIA_ROOT",  # task files of the family, themselves and by find_media
    }
)
"""Option -> environment variable. Our own code takes the options as arguments (``TaskOptions.run_options``)."""


@contextmanager
def exported(config: RunConfig) -> Iterator[None]:
    """Set the variables of the options that are given, and put the earlier values back at the end."""
    given = {variable: str(value) for name, variable in VARIABLES.items() if (value := getattr(config, name))}
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
