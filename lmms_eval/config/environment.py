"""Environment variables as defaults of options: the only place that reads them for a run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from lmms_eval.config.options import options


@dataclass(frozen=True, slots=True)
class EnvironmentDefault:
    """Default of one option by an environment variable."""

    variable: str
    text: str


def environment_defaults(environ: Mapping[str, str]) -> dict[str, EnvironmentDefault]:
    """Defaults by option name. Of an option's variables the first that is set and not empty counts."""
    found = {}
    for option in options():
        for variable in option.variables:
            if text := environ.get(variable, "").strip():
                found[option.name] = EnvironmentDefault(
                    variable, os.path.join(text, "datasets") if variable == "HF_HOME" else text
                )
                break
    return found
