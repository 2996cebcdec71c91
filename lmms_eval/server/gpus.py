"""Room for runs: GPUs that are given out, and the number of runs side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lmms_eval.errors import RequestError

_WORKERS = ("media_workers", "score_workers")
_WORKERS_PER_CORE = 8


@dataclass(frozen=True, slots=True)
class Room:
    """All that a server may give to runs.

    Args:
        gpus: the GPUs that are given out, by the names that ``CUDA_VISIBLE_DEVICES`` takes; empty: none are, each run
            sees what the server sees.
        parallel: runs side by side at most.
        seen: the number of GPUs that the server sees, which bounds a run where none are given out.
        cores: the number of its cores, which bounds the workers of a run.
    """

    gpus: tuple[str, ...] = ()
    parallel: int = 1
    seen: int = 0
    cores: int = 1

    def check(self, request: Mapping[str, Any]) -> None:
        """Refuse what never fits. Raises ``RequestError``."""
        for name in _WORKERS:
            count = request.get(name)
            if isinstance(count, int) and count > self.cores * _WORKERS_PER_CORE:
                most = self.cores * _WORKERS_PER_CORE
                raise RequestError(f"{name}: {self.cores} cores of this server take {most} at most; got {count}")
        if not self.gpus:
            if _count(request) > max(1, self.seen):
                raise RequestError(f"num_gpus: this server sees {self.seen} GPUs; got {_count(request)}")
            return
        wanted = _named_gpu(request)
        if wanted is not None and wanted not in self.gpus:
            raise RequestError(f"device: this server gives out the GPUs {', '.join(self.gpus)}; there is no {wanted}")
        if wanted is not None and _count(request) > 1:
            raise RequestError("device: cuda:N is one GPU; leave it out for num_gpus above 1")
        if _count(request) > len(self.gpus):
            raise RequestError(f"num_gpus: this server gives out {len(self.gpus)}; got {_count(request)}")

    def find(self, request: Mapping[str, Any], held: Iterable[tuple[str, ...]]) -> tuple[str, ...] | None:
        """Find room for a run beside those that hold theirs: its GPUs, or ``None`` where it must wait."""
        taken = list(held)
        if len(taken) >= self.parallel:
            return None
        if not self.gpus or _runs_without(request):
            return ()
        free = [gpu for gpu in self.gpus if not any(gpu in one for one in taken)]
        wanted = _named_gpu(request)
        if wanted is not None:
            return (wanted,) if wanted in free else None
        return tuple(free[: _count(request)]) if len(free) >= _count(request) else None

    def visible(self, gpus: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return the GPUs that a run is shown; ``None`` where this server does not give them out."""
        return gpus if self.gpus else None


def _count(request: Mapping[str, Any]) -> int:
    return int(request.get("num_gpus") or 1)


def _runs_without(request: Mapping[str, Any]) -> bool:
    return str(request.get("device") or "").strip().lower() == "cpu"


def _named_gpu(request: Mapping[str, Any]) -> str | None:
    kind, _, name = str(request.get("device") or "").strip().partition(":")
    return name if kind == "cuda" and name else None
