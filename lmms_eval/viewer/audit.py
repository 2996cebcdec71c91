"""Audits of the samples that a report lists, and the columns by which a page finds the samples behind each count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lmms_eval.results.audit import Audit, Auditor
from lmms_eval.results.run_reader.reading import PREFIX, columns_of
from lmms_eval.results.run_reader.sample import Sample, SampleKeys

NOT_TOLD = "not told"


@dataclass(slots=True)
class TaskAudit:
    """Audit of one task while its samples are read."""

    auditor: Auditor
    keys: SampleKeys
    redact: frozenset[str]
    """Keys of which nothing is told: their values are not there for the audit."""
    _columns: dict[tuple[str, str], dict[int, str]] = field(default_factory=dict)
    """By pipeline and name, the values of rows."""

    def see(self, row: int, lines: Sequence[Mapping[str, Any]]) -> None:
        """Count the lines of a row, one for each filter pipeline."""
        for line in lines:
            sample = Sample(self.auditor.task, _without(line, self.redact), self.keys)
            reading = self.auditor.see(sample)
            for name, value in (columns_of(sample, reading) if reading else {}).items():
                self._columns.setdefault((sample.filter, name), {})[row] = value

    def columns(self, rows: Sequence[int]) -> dict[str, list[str | None]]:
        """Return the columns of those rows; with several pipelines the name of each ends in ``,PIPELINE``."""
        is_one = len({pipeline for pipeline, _ in self._columns}) < 2
        return {
            name if is_one else f"{name},{pipeline}": [values.get(row) for row in rows]
            for (pipeline, name), values in self._columns.items()
            if set(values.values()) != {NOT_TOLD}
        }

    def found(self) -> list[dict[str, Any]]:
        """Return the counts of each pipeline, as a page reads them."""
        audits = self.auditor.audits()
        return [_plain(one, f",{one.filter}" if len(audits) > 1 else "") for one in audits]


def _plain(audit: Audit, ending: str) -> dict[str, Any]:
    rules = {name: audit.frequent(name) for name in audit.rules}
    return asdict(audit) | {"rules": rules, "prefix": PREFIX, "ending": ending}


def _without(value: Any, keys: frozenset[str]) -> Any:
    if not keys:
        return value
    if isinstance(value, Mapping):
        return {key: _without(item, keys) for key, item in value.items() if str(key) not in keys}
    return [_without(item, keys) for item in value] if isinstance(value, list) else value
