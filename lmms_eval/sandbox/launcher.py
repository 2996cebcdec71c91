"""Runs programs in sandbox children: one child serves many programs, each in a fork with all restrictions."""

from __future__ import annotations

import atexit
import base64
import functools
import json
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Literal

from msgspec import Struct

from lmms_eval.errors import LmmsEvalError
from lmms_eval.processes import Child, ChildError, Pool
from lmms_eval.sandbox.confine import Setup
from lmms_eval.sandbox.layers import (
    BUBBLEWRAP,
    LANDLOCK,
    NAMESPACES,
    SECCOMP,
    THREADS,
    Layer,
    bubblewrap,
    clean_environment,
    interpreter,
)
from lmms_eval.sandbox.policy import Policy as Policy  # documented names: authors of tasks import them from here
from lmms_eval.sandbox.policy import SandboxRefused as SandboxRefused
from lmms_eval.sandbox.policy import current_policy
from lmms_eval.utils.records import to_dict

Style = Literal["script", "captured"]
Reason = Literal["ok", "nonzero", "cpu", "wall", "memory", "output", "killed", "refused"]


class Program(Struct, frozen=True):
    """A Python program and its input.

    ``script``: the program runs as ``__main__``, with ``stdin`` as its standard input; its standard output is the
    output.

    ``captured``: ``input()`` returns the lines of ``stdin`` one by one (``StopIteration`` after the last one), standard
    input itself is empty, and the printed text becomes the output when the program reaches its end. The text of an
    exception replaces it; a program that exits has no output (``nonzero``).
    """

    source: str
    stdin: str = ""
    style: Style = "script"
    one_namespace: bool = True
    """``captured`` only. If ``False``, top-level names are local and functions do not see them."""
    packages: tuple[str, ...] = ()
    """Installed packages that it may import in addition to the standard library; absent ones are ignored."""


class Limits(Struct, frozen=True):
    """Resources that a program may use."""

    cpu_s: int = 2
    wall_s: float = 10.0
    memory_bytes: int = 1 << 30
    """Address space."""
    output_bytes: int = 1 << 20
    source_bytes: int = 1 << 20
    """Bytes of the program and its input together; a larger program is refused."""
    open_files: int = 64


class Outcome(Struct, frozen=True):
    """The ending of a program.

    ``ok``: exit status 0; ``nonzero``: any other status, or an exception; ``cpu``, ``wall``, ``memory``, ``output``:
    it exceeded that limit; ``killed``: by another signal; ``refused``: not started (too large).
    """

    reason: Reason
    status: int | None = None
    """Exit status, or minus the signal."""
    stdout: bytes = b""
    """Output, at most ``output_bytes`` of it."""
    stderr: bytes = b""
    """The last bytes of standard error."""
    cpu_s: float = 0.0
    wall_s: float = 0.0


class SandboxError(LmmsEvalError):
    """The sandbox itself failed: its child could not be started or did not answer."""


START_LIMIT_S = 30.0
GRACE_S = 5.0
"""Seconds after the program's own time limit until the child is given up."""
PROGRAMS_PER_CHILD = 1000


def run(program: Program, limits: Limits | None = None, policy: Policy | None = None) -> Outcome:
    """Run a program to its end or to a limit. Several threads may call this at once.

    Raises:
        SandboxRefused: the machine lacks a layer to confine the program, and the policy requires it.
        SandboxError: the sandbox child could not be started or died.
    """
    limits = limits or Limits()
    layers = (policy or current_policy()).layers()
    if len(program.source) + len(program.stdin) > limits.source_bytes:
        return Outcome("refused")
    return _run(_setup(layers, program), program, limits)


def _setup(layers: Sequence[Layer], program: Program) -> Setup:
    """Return the setup of a child, without its folder; children of the same setup are interchangeable."""
    active = {layer.name for layer in layers if layer.active}
    enclosed = BUBBLEWRAP in active
    return Setup(
        "",
        tuple(folder for name in program.packages for folder in package_folders(name)),
        namespaces=NAMESPACES in active and not enclosed,
        enclosed=enclosed,
        landlock=LANDLOCK in active,
        seccomp=SECCOMP in active,
        threads=THREADS in active,
    )


@functools.cache
def package_folders(name: str) -> tuple[str, ...]:
    """Return the folders of an installed package and its shared libraries without importing it; empty if absent."""
    spec = PathFinder.find_spec(name)
    if spec is None or not spec.origin or not spec.submodule_search_locations:
        return ()
    folder = Path(spec.origin).resolve().parent
    return tuple(str(path) for path in (folder, folder.with_name(f"{name}.libs")) if path.is_dir())


class _Child(Child):
    """A sandbox child. Raises ``SandboxError`` if it cannot be started."""

    def __init__(self, setup: Setup) -> None:
        self._empty = os.path.realpath(tempfile.mkdtemp(prefix="lmms-eval-sandbox-"))
        setup = replace(setup, empty=self._empty)
        command = interpreter()
        if setup.enclosed:
            program = shutil.which("bwrap")
            if program is None:
                raise SandboxError("the program bwrap has disappeared")
            command = bubblewrap(program, setup)
        try:
            super().__init__("sandbox", clean_environment(), command=command)
        except OSError as error:
            shutil.rmtree(self._empty, ignore_errors=True)
            raise SandboxError(f"no sandbox process could be started: {error}") from error
        try:
            self.ask(json.dumps({"setup": asdict(setup)}).encode(), START_LIMIT_S)
        except ChildError as error:
            self.close()
            raise SandboxError(str(error)) from error
        if setup.namespaces or setup.enclosed:  # the child now has a root of its own
            shutil.rmtree(self._empty, ignore_errors=True)

    def close(self, patience_s: float = 0.0) -> None:
        """Kill the child with all its processes, and remove its folder."""
        self.kill()
        super().close(patience_s)
        if self.is_own:
            shutil.rmtree(self._empty, ignore_errors=True)


_pool = Pool(PROGRAMS_PER_CHILD)


def _run(setup: Setup, program: Program, limits: Limits) -> Outcome:
    job = json.dumps({**to_dict(program), "limits": to_dict(limits)}).encode()
    begin = time.monotonic()
    try:
        with _pool.lend(lambda: _Child(setup), setup) as child:
            begin = time.monotonic()
            reply = json.loads(child.ask(job, limits.wall_s + GRACE_S))
    except ChildError as error:
        seconds = time.monotonic() - begin
        if seconds < limits.wall_s:
            raise SandboxError(str(error)) from error
        return Outcome("wall", wall_s=seconds)
    stdout, stderr = base64.b64decode(reply["stdout"]), base64.b64decode(reply["stderr"])
    return Outcome(reply["reason"], reply["status"], stdout, stderr, reply["cpu_s"], reply["wall_s"])


def close() -> None:
    """End all idle children."""
    _pool.close(0.0)


atexit.register(close)
