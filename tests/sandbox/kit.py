"""Ways to confine a program, as far as this machine has them, and a look for what programs leave behind."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from lmms_eval.sandbox.confine import Setup
from lmms_eval.sandbox.layer import BUBBLEWRAP, LANDLOCK, LIMITS, NAMESPACES, NO_NEW_PRIVILEGES, SECCOMP, Layer
from lmms_eval.sandbox.layers import probe_bubblewrap, probe_layers
from lmms_eval.sandbox.policy import Policy

COMBINATIONS = {
    "all": (NAMESPACES, LANDLOCK, SECCOMP),
    "no_namespaces": (LANDLOCK, SECCOMP),
    "no_landlock": (NAMESPACES, SECCOMP),
    "bubblewrap": (BUBBLEWRAP, LANDLOCK, SECCOMP),
}
"""What confines files, network and processes on one machine or another."""


def only(names: Sequence[str]) -> list[Layer]:
    """Layers as they would be found on a machine that has these and no others."""
    known = (NAMESPACES, BUBBLEWRAP, LANDLOCK, SECCOMP, NO_NEW_PRIVILEGES, LIMITS)
    return [Layer(name, name in names or name == LIMITS, "simulated") for name in known]


def policy_of(names: Sequence[str], allow_unsafe: bool = False) -> Policy:
    """Skips the test where this machine lacks one of the layers."""
    present = {layer.name for layer in (*probe_layers(), _bubblewrap()) if layer.active}
    lacking = [name for name in names if name not in present]
    if lacking:
        pytest.skip(f"not on this machine: {', '.join(lacking)}")
    return Policy(allow_unsafe, lambda: only(names))


@functools.cache
def _bubblewrap() -> Layer:
    """Tried also where it is not needed."""
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
