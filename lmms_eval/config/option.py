"""Declaration of an option: its flag, its group in the help, and what else is said of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

MODEL, TASKS, GENERATION = "Model", "Tasks and data", "Prompts and generation"
JUDGE = "Judge"
OUTPUT, RUNNING, STATISTICS, MEDIA = "Output", "Running", "Statistics", "Media"
TRACKERS = "Trackers and hub"
GROUPS = (MODEL, TASKS, GENERATION, JUDGE, OUTPUT, TRACKERS, RUNNING, STATISTICS, MEDIA)


if TYPE_CHECKING:
    from typing import NotRequired, TypedDict, Unpack

    class Details(TypedDict):
        aliases: NotRequired[tuple[str, ...]]
        spelling: NotRequired[str]
        metavar: NotRequired[str]
        choices: NotRequired[tuple[str, ...]]
        variables: NotRequired[tuple[str, ...]]
        run_only: NotRequired[bool]
        optional_value: NotRequired[bool]
        for_tasks: NotRequired[bool]
        repeatable: NotRequired[bool]


@dataclass(frozen=True, slots=True)
class Option:
    """Declaration of one option, a field of ``RunConfig``: all that command line and documentation say of it."""

    name: str
    default: Any
    group: str
    text: str
    is_switch: bool
    aliases: tuple[str, ...] = ()
    """Further spellings of the flag, with their dashes."""
    spelling: str = ""
    """The flag, where it is not ``--`` and the name."""
    metavar: str = ""
    choices: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    """Environment variables that give the default, the first one set wins."""
    run_only: bool = False
    """Cannot change a model's answer by itself, so it is not part of the run key (tasks and data enter it by hash)."""
    optional_value: bool = False
    """The flag may stand without a value, which means ``True``."""
    for_tasks: bool = False
    """Handed to the tasks whose YAML asks for it (``run_options``)."""
    repeatable: bool = False
    """The flag may be given several times."""

    @property
    def flag(self) -> str:
        return self.spelling or f"--{self.name}"


def option(default: Any, group: str, text: str, **details: Unpack[Details]) -> Any:
    """Declare an option that can change a model's answer."""
    return field(default=default, metadata={"group": group, "text": text, "details": details})


def run(default: Any, group: str, text: str, **details: Unpack[Details]) -> Any:
    """Declare an option that cannot change an answer by itself."""
    details["run_only"] = True
    return option(default, group, text, **details)
