"""Options of a run as the page offers them, from their one declaration."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass

from lmms_eval.config.option import GROUPS
from lmms_eval.config.options import RunConfig, options
from lmms_eval.models.arguments import Kind, kind_of

ELSEWHERE = ("config", "model", "model_args", "tasks")
"""Options that the page asks for in places of their own, or not at all."""
USUAL = ("limit", "num_fewshot", "batch_size", "gen_kwargs", "system_instruction", "repeats", "device", "judge_model")


@dataclass(frozen=True, slots=True)
class OptionChoice:
    """An option of a run."""

    name: str
    group: str
    kind: Kind
    default: bool | int | float | str | None
    choices: tuple[str, ...]
    text: str
    metavar: str
    is_usual: bool
    """One of the few that most people give."""


def option_choices(refused: Collection[str] = ()) -> tuple[OptionChoice, ...]:
    """List the options, by group in the order of the help.

    Args:
        refused: options that this server takes from no request.
    """
    kinds = {field.name: kind_of(field.type) for field in dataclasses.fields(RunConfig)}
    found = []
    for option in options():
        if option.later or option.name in ELSEWHERE or option.name in refused:
            continue
        default = ",".join(map(str, option.default)) if isinstance(option.default, tuple) else option.default
        kind, choices = kinds[option.name]
        found.append(
            OptionChoice(
                option.name,
                option.group,
                kind,
                default if default != "" else None,
                option.choices or choices,
                option.text,
                option.metavar,
                option.name in USUAL,
            )
        )
    return tuple(sorted(found, key=lambda one: GROUPS.index(one.group)))
