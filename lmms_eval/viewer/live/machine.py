"""Accelerators of this machine, as nvidia-smi tells of them."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass

EVERY_S = 5.0
_QUERY = ("--query-gpu=name,utilization.gpu,memory.used,memory.total", "--format=csv,noheader,nounits")
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Gpu:
    """One accelerator; memory in bytes, ``None`` where the driver does not tell."""

    name: str
    busy: float | None
    """Share of time in which it computed."""
    used: int | None
    total: int | None


class Machine:
    """Asks nvidia-smi, where there is one, in a thread of its own."""

    def __init__(self, program: str | None = None) -> None:
        self._program = program or shutil.which("nvidia-smi")
        self._ended = threading.Event()
        self.gpus: tuple[Gpu, ...] = ()

    def start(self) -> None:
        if self._program is not None:
            threading.Thread(target=self._ask, args=(self._program,), name="gpus", daemon=True).start()

    def close(self) -> None:
        self._ended.set()

    def _ask(self, program: str) -> None:
        while not self._ended.is_set():
            try:
                answer = subprocess.run([program, *_QUERY], capture_output=True, text=True, timeout=20, check=True)
            except (OSError, subprocess.SubprocessError):
                self.gpus = ()
                return
            self.gpus = read_gpus(answer.stdout.splitlines())
            self._ended.wait(EVERY_S)


def read_gpus(lines: Sequence[str]) -> tuple[Gpu, ...]:
    """Read the lines of nvidia-smi; those of another form are passed over."""
    found = []
    for line in lines:
        name, *numbers = (word.strip() for word in line.rsplit(",", 3))
        if len(numbers) == 3:
            busy, used, total = map(_number, numbers)
            found.append(
                Gpu(
                    name,
                    None if busy is None else busy / 100,
                    None if used is None else int(used * _MIB),
                    None if total is None else int(total * _MIB),
                )
            )
    return tuple(found)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:  # [N/A]
        return None
