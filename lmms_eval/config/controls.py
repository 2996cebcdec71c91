"""The controls that a run can ask beside its tasks (``--ablate``, ``docs/controls.md``)."""

from __future__ import annotations

from lmms_eval.utils.arguments import comma_list

CONTROLS = ("no-media", "blank-media", "shuffled-media", "choices-only")


def controls_of(ablate: str | None) -> tuple[str, ...]:
    """The parts of ``ablate``, each once."""
    return tuple(dict.fromkeys(comma_list(ablate)))


def control_name(task: str, control: str) -> str:
    """Return the name under which a control runs: ``TASK@CONTROL``."""
    return f"{task}@{control}"
