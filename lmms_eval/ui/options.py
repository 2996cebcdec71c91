"""Options of a run as the page offers them, from their one declaration."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from lmms_eval.config.option import GROUPS
from lmms_eval.config.options import RunConfig, options
from lmms_eval.models.arguments import Kind, kind_of

ELSEWHERE = ("config", "model", "model_args", "tasks")
"""Options that the page asks for in places of their own, or not at all."""
USUAL = (
    "limit", "batch_size", "num_fewshot", "repeats", "gen_kwargs", "system_instruction", "order", "judge_model",
    "device",
)  # fmt: skip


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


def option_choices(
    refused: Collection[str] = (), defaults: Mapping[str, bool] | None = None
) -> tuple[OptionChoice, ...]:
    """List the options, the usual ones first, the others by group in the order of the help.

    Args:
        refused: options that this server takes from no request.
        defaults: values that this server fills in, where they are not those of the command line.
    """
    kinds = {field.name: kind_of(field.type) for field in dataclasses.fields(RunConfig)}
    found = []
    for option in options():
        if option.name in ELSEWHERE or option.name in refused:
            continue
        default = (defaults or {}).get(option.name, option.default)
        if isinstance(default, tuple):
            default = ",".join(map(str, default))
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
    return tuple(sorted(found, key=_place))


def _place(one: OptionChoice) -> tuple[int, int]:
    return (0, USUAL.index(one.name)) if one.name in USUAL else (1, GROUPS.index(one.group))
