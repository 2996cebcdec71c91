"""Signs that the processes of a run give once a second (``engine/vitals.py``), read by whoever watches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from lmms_eval.engine.vitals import VITALS

STALE_S = 10.0
"""Signs of a process that are so much older than those of another are of one that is gone."""


@dataclass(frozen=True, slots=True)
class Signs:
    """A process of a run; what it does not tell is ``None``."""

    host: str
    pid: int | None
    time: float
    started: float | None = None
    memory: int | None = None
    """Bytes."""
    in_flight: int | None = None
    """Requests that the model has taken and not answered."""
    concurrency: int | None = None
    done: int | None = None
    """Documents that it has finished since it began."""


def read_signs(folder: Path) -> list[Signs]:
    """Read the signs of all processes; a killed one of an earlier launch has left an old file."""
    found = [signs for path in sorted(folder.glob(VITALS)) if (signs := _read(path)) is not None]
    newest = max((signs.time for signs in found), default=0.0)
    return [signs for signs in found if signs.time >= newest - STALE_S]


def _read(path: Path) -> Signs | None:
    try:
        told = orjson.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(told, dict) or (written := _number(told, "time")) is None:
        return None
    whole = {name: _whole(told, name) for name in ("pid", "memory", "in_flight", "concurrency", "done")}
    return Signs(host=str(told.get("host", "")), time=written, started=_number(told, "started"), **whole)


def _number(told: dict[str, Any], name: str) -> float | None:
    value = told.get(name)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _whole(told: dict[str, Any], name: str) -> int | None:
    value = _number(told, name)
    return None if value is None else int(value)
