"""Ends an engine's processes when the process that started them is killed: vLLM's outlive it and keep their memory."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def descendants(pid: int) -> list[int]:
    """The processes below one, the nearest first; none where the system does not tell (``/proc`` of Linux does)."""
    try:
        text = " ".join(file.read_text() for file in Path(f"/proc/{pid}/task").glob("*/children"))
    except OSError:
        return []
    children = [int(word) for word in text.split()]
    return [*children, *(below for child in children for below in descendants(child))]


class Guard:
    """A shell that waits until this process is gone, and then kills the processes given to it."""

    def __init__(self, processes: list[int]) -> None:
        self._shell: subprocess.Popen[bytes] | None = None
        if processes:
            killing = f"read _; kill -9 {' '.join(map(str, processes))}"
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", killing],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # a signal to the terminal's processes is not for it
            )

    @classmethod
    def of_new_processes(cls, before: list[int]) -> Guard:
        """Guard the descendants of this process that are not among ``before``."""
        return cls([pid for pid in descendants(os.getpid()) if pid not in before])

    def close(self) -> None:
        """Leave the processes alone from now on."""
        if self._shell is not None:
            self._shell.kill()
            self._shell.wait()
            assert self._shell.stdin is not None
            self._shell.stdin.close()
            self._shell = None
