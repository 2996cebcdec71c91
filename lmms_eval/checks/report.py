"""The report of a check for people: what is broken first, alike faults together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lmms_eval.checks.findings import SHOWN, Checked, Checks, Finding, Status
from lmms_eval.utils.markdown import Column, markdown_table

_FROM_BAD_TO_GOOD: tuple[Status, ...] = ("failed", "doubtful", "skipped")
_NAMES = 4
_CAUSE = 160


def report_lines(checks: Checks) -> list[str]:
    """The table of faults, an example of each with what to do, and the numbers."""
    faults = list(_faults(checks))
    lines = []
    if faults:
        columns = (
            ("outcome", [SHOWN[status] for status, _, _ in faults]),
            ("step", [first.step for _, first, _ in faults]),
            ("what", [first.kind for _, first, _ in faults]),
            ("cause", [_short(first.cause) for _, first, _ in faults]),
            ("number", [str(len(names)) for _, _, names in faults]),
            ("names", [_listed(names) for _, _, names in faults]),
        )
        table = markdown_table([Column(head, tuple(cells), head != "number") for head, cells in columns])
        lines += [table.rstrip("\n"), ""]
        lines += [*(f"{SHOWN[status]}: {names[0]}: {first.message}" for status, first, names in faults), ""]
    return [*lines, summary(checks)]


def summary(checks: Checks) -> str:
    """One line of numbers."""
    counts = ", ".join(f"{number} {word}" for word, number in checks.counts().items() if number)
    time = f"{checks.seconds:.1f} s, {checks.processes} process{'es' if checks.processes != 1 else ''}"
    return f"{len(checks.checked)} checked: {counts or 'nothing'} ({time})"


def _faults(checks: Checks) -> Iterator[tuple[Status, Finding, list[str]]]:
    """Findings that are alike, with the names they stand for; within an outcome the most frequent first."""
    for status in _FROM_BAD_TO_GOOD:
        alike: dict[tuple[str, str, str], list[tuple[Checked, Finding]]] = {}
        for each in checks.having(status):
            worst = each.decisive
            if worst is not None:
                alike.setdefault((worst.step, worst.kind, worst.cause), []).append((each, worst))
        for found in sorted(alike.values(), key=lambda found: -len(found)):
            yield status, found[0][1], [each.name for each, _ in found]


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - _NAMES
    return ", ".join(names[:_NAMES]) + (f" and {rest} more" if rest > 0 else "")


def _short(text: str) -> str:
    return text if len(text) <= _CAUSE else f"{text[: _CAUSE - 3]}..."
