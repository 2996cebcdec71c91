"""Ways to confine a program, as far as this machine has them, and attempts to get out, which must leave nothing."""

from __future__ import annotations

import functools
import os
import tempfile
import textwrap
import time
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from lmms_eval.sandbox import launcher
from lmms_eval.sandbox.confine import Setup
from lmms_eval.sandbox.launcher import Limits, Outcome, Program
from lmms_eval.sandbox.layers import (
    BUBBLEWRAP,
    CONFINES,
    LANDLOCK,
    NAMESPACES,
    SECCOMP,
    THREADS,
    Layer,
    probe_bubblewrap,
    probe_layers,
)
from lmms_eval.sandbox.layers import LIMITS as LIMITS_LAYER
from lmms_eval.sandbox.policy import Policy

LIMITS = Limits(cpu_s=1, wall_s=5.0, memory_bytes=256 << 20, output_bytes=10_000)
COMBINATIONS = {
    "all": (NAMESPACES, LANDLOCK, SECCOMP, THREADS),
    "no_namespaces": (LANDLOCK, SECCOMP, THREADS),
    "no_landlock": (NAMESPACES, SECCOMP, THREADS),
    "bubblewrap": (BUBBLEWRAP, LANDLOCK, SECCOMP, THREADS),
}
"""What confines files, network and processes on one machine or another."""


def only(names: Collection[str]) -> list[Layer]:
    """Layers as they would be found on a machine that has these and no others."""
    return [Layer(name, name in names or name == LIMITS_LAYER, "simulated") for name in CONFINES]


def policy_of(names: Sequence[str], allow_unsafe: bool = False) -> Policy:
    """Skips the test where this machine lacks one of the layers; without ``threads`` programs just have none."""
    present = {layer.name for layer in (*probe_layers(), *_bubblewrap()) if layer.active}
    lacking = [name for name in names if name not in present and name != THREADS]
    if lacking:
        pytest.skip(f"not on this machine: {', '.join(lacking)}")
    return Policy(allow_unsafe, lambda: only(present.intersection(names)))


@functools.cache
def _bubblewrap() -> tuple[Layer, ...]:
    """Tried even if it is not needed."""
    with tempfile.TemporaryDirectory() as empty:
        return probe_bubblewrap(Setup(empty))


def processes_named(name: str) -> list[int]:
    """Processes of the machine whose name (``PR_SET_NAME``) is ``name``."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                if (folder / "comm").read_text().strip() == name:
                    found.append(int(folder.name))
            except OSError:
                continue
    return found


def rename(name: str) -> str:
    """The line of a program that gives its process a name of at most 15 characters."""
    return f"import ctypes; ctypes.CDLL(None).prctl(15, {name.encode()!r}, 0, 0, 0)\n"


def mark() -> str:
    return f"stray{os.urandom(4).hex()}"


def attempt(source: str, policy: Policy, limits: Limits = LIMITS) -> Outcome:
    """The outcome of a program that must not succeed; the sandbox must still work afterwards, and nothing be left."""
    name = mark()
    begin = time.monotonic()
    outcome = launcher.run(Program(rename(name) + textwrap.dedent(source)), limits, policy)
    assert time.monotonic() - begin < limits.wall_s + launcher.GRACE_S
    assert outcome.reason != "ok", outcome
    assert b"ESCAPED" not in outcome.stdout
    assert processes_named(name) == []
    assert launcher.run(Program("print(1)"), limits, policy).stdout == b"1\n"
    return outcome


def refused(outcome: Outcome) -> bool:
    """Whether a system call was refused (and not, say, a name was wrong)."""
    last = outcome.stderr.decode().strip().splitlines()[-1]
    known = (
        "PermissionError",
        "FileNotFoundError",
        "OSError",
        "BlockingIOError",
        "ConnectionRefusedError",
        "RuntimeError: can't start",
    )
    return outcome.reason == "nonzero" and last.startswith(known)


def active(policy: Policy) -> tuple[str, ...]:
    return tuple(layer.name for layer in policy.probe() if layer.active)
