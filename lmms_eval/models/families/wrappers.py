"""A class for each row of the table of families, under the family's name."""

from __future__ import annotations

import functools

from lmms_eval.models.families.table import FAMILIES
from lmms_eval.models.hf.model import HuggingFace


@functools.cache
def wrapper(name: str) -> type[HuggingFace]:
    """The class of a family: ``hf`` with the family's profile.

    Raises:
        KeyError: no row of the table has this name.
    """
    profile = FAMILIES[name]
    described = f"``hf`` for {', '.join(profile.model_types) or profile.architecture}."
    return type(name, (HuggingFace,), {"__module__": __name__, "__doc__": described, "profile": profile})


def __getattr__(name: str) -> type[HuggingFace]:
    """``wrappers.gemma3``: classes are made when they are asked for, as the registry does by their path."""
    if name not in FAMILIES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return wrapper(name)
