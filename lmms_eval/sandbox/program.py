"""Input and output of the sandbox."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Style = Literal["script", "captured"]
Reason = Literal["ok", "nonzero", "cpu", "wall", "memory", "output", "killed", "refused"]


@dataclass(frozen=True, slots=True)
class Program:
    """A Python program and its input.

    ``script``: runs as ``__main__``; ``stdin`` is its standard input, what it writes to standard output its output.

    ``captured``: ``input()`` takes the lines of ``stdin`` one by one (``StopIteration`` after the last), standard input
    itself is empty, and what is printed becomes output when the program has come to its end. The text of an exception
    takes its place; a program that exits gives none (``nonzero``).
    """

    source: str
    stdin: str = ""
    style: Style = "script"
    one_namespace: bool = True
    """``captured`` only. ``False``: top-level names are local, functions do not see them."""
    packages: tuple[str, ...] = ()
    """Installed packages that it may import beside the standard library; one that is absent is passed over."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Resources that a program may use."""

    cpu_s: int = 2
    wall_s: float = 10.0
    memory_bytes: int = 1 << 30
    """Address space."""
    output_bytes: int = 1 << 20
    source_bytes: int = 1 << 20
    """Bytes of the program and its input together; more is refused."""
    open_files: int = 64


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a program.

    ``ok``: exit status 0; ``nonzero``: any other, also an exception; ``cpu``, ``wall``, ``memory``, ``output``: over
    that limit; ``killed``: by another signal; ``refused``: not started (too large).
    """

    reason: Reason
    status: int | None = None
    """Exit status, or minus the signal."""
    stdout: bytes = b""
    """Output, at most ``output_bytes`` of it."""
    stderr: bytes = b""
    """The end of it."""
    cpu_s: float = 0.0
    wall_s: float = 0.0
