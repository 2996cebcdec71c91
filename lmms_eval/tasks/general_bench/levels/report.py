"""Result of ranking a model: levels, counts, missing rows, problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from msgspec import Struct
from msgspec.structs import astuple

from lmms_eval.tasks.general_bench.levels.formulas import AllLevels

Profile = Literal["paper", "reference"]


class Entry(Struct, frozen=True):
    """The part of a task in the levels."""

    sheet: str
    task: str
    metric: str
    raw: float | None
    """The value in the table, or ``None``."""
    score: float | None
    """Score between 0 and 100 (profile ``reference``: whatever its mapping gives)."""
    raw_specialist: float
    specialist: float
    won: bool

    @property
    def counted(self) -> float:
        return self.score or 0.0

    @property
    def winning(self) -> float:
        return self.counted if self.won else 0.0


class Support(Struct, frozen=True):
    """Numbers of tasks. ``supported`` have a score other than 0, ``wins`` reach the specialist."""

    supported: int
    total: int
    wins: int


class ModalityReport(Struct, frozen=True):
    """One modality with M comprehension rows and N generation rows."""

    levels: Mapping[int, float]
    """Levels 2 to 4 by number."""
    comprehension_rows: int
    generation_rows: int
    support: Support


def modality_reports(
    levels: AllLevels, entries: Mapping[str, Sequence[Entry]], supports: Mapping[str, Support]
) -> dict[str, ModalityReport]:
    """Return the report of each modality, from the entries and the supports of the sheets."""
    found = {}
    for modality, scores in levels.modalities.items():
        sheets = [f"{modality}-{part}" for part in ("Comprehension", "Generation")]
        counts = [len(entries.get(name, ())) for name in sheets]
        known = [astuple(supports[name]) for name in sheets if name in supports]
        found[modality] = ModalityReport(
            scores, counts[0], counts[1], Support(*map(sum, zip((0, 0, 0), *known, strict=True)))
        )
    return found


class LanguageReport(Struct, frozen=True):
    """The T language rows. ``score`` is L of level 5, from 0 to 100."""

    support: Support
    score: float


@dataclass(frozen=True, slots=True)
class Ranked:
    """The levels of one model."""

    model: str
    profile: Profile
    scope: str
    modalities: Mapping[str, ModalityReport]
    language: LanguageReport | None
    """``None`` if the scope leaves language out."""
    levels: Mapping[int, float]
    """Levels of the scope by number."""
    epsilon: float
    entries: Mapping[str, tuple[Entry, ...]] = field(repr=False)
    """Entries by sheet."""
    problems: tuple[str, ...] = ()
    """Unusable values. Each counts as missing."""
    warnings: tuple[str, ...] = ()

    @property
    def reached(self) -> int | None:
        """The highest level with a score above zero (General-Bench specification §10.10)."""
        return max((level for level, score in self.levels.items() if score > 0), default=None)

    @property
    def missing(self) -> tuple[Entry, ...]:
        return tuple(entry for rows in self.entries.values() for entry in rows if entry.raw is None)
