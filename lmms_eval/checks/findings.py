"""Findings of a check, and the report of one task, group, file or model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Status = Literal["ok", "doubtful", "skipped", "failed"]
"""``doubtful``: it runs, but a score is not what it should be; ``skipped``: what the step needs is not here."""
What = Literal["task", "group", "file", "model"]
_WORST_FIRST: tuple[Status, ...] = ("failed", "doubtful", "skipped")
SHOWN: Mapping[Status, str] = {"failed": "broken", "doubtful": "doubtful", "skipped": "skipped", "ok": "well"}
"""Words for people."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Outcome of one step."""

    step: str
    status: Status = "ok"
    kind: str = ""
    """A few words by which findings are counted: ``package missing``, ``data not at hand``, ..."""
    cause: str = ""
    """The part of the message that is the same for all tasks with this fault."""
    message: str = ""
    """The whole of it: where, what, and what to do."""

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Finding:
        return cls(**record)


@dataclass(frozen=True, slots=True)
class Checked:
    """The report of one task, group, file or model."""

    name: str
    what: What
    file: str
    findings: tuple[Finding, ...]
    seconds: float = 0.0

    @property
    def status(self) -> Status:
        """The worst of the findings; where nothing was tried beyond what was skipped, ``skipped``."""
        found = {finding.status for finding in self.findings}
        return next((status for status in _WORST_FIRST if status in found), "ok")

    @property
    def decisive(self) -> Finding | None:
        """The first finding of the worst kind; ``None`` if all is well."""
        status = self.status
        return None if status == "ok" else next(each for each in self.findings if each.status == status)

    def as_record(self) -> dict[str, Any]:
        """JSON of ``lmms-eval check --json``; steps that went well carry no texts."""
        findings = [{key: value for key, value in asdict(each).items() if value} for each in self.findings]
        return {
            "name": self.name,
            "what": self.what,
            "file": self.file,
            "status": SHOWN[self.status],
            "seconds": round(self.seconds, 3),
            "findings": findings,
        }


@dataclass(frozen=True, slots=True)
class Checks:
    """Everything that a check has found."""

    checked: tuple[Checked, ...]
    seconds: float = 0.0
    processes: int = 0

    def having(self, status: Status) -> Iterator[Checked]:
        return (each for each in self.checked if each.status == status)

    def counts(self) -> dict[str, int]:
        """Numbers by outcome, in words for people."""
        return {SHOWN[status]: sum(1 for _ in self.having(status)) for status in SHOWN}

    def is_sound(self, strict: bool = False) -> bool:
        """Tell whether nothing is broken and, with ``strict``, nothing doubtful."""
        refused = ("failed", "doubtful") if strict else ("failed",)
        return not any(each.status in refused for each in self.checked)


def joined(parts: Sequence[Checks]) -> Checks:
    """One report of several."""
    return Checks(
        tuple(each for part in parts for each in part.checked),
        sum(part.seconds for part in parts),
        max((part.processes for part in parts), default=0),
    )
