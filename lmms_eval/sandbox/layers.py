"""What this machine offers to confine a program, found by trying it."""

from __future__ import annotations

import functools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lmms_eval.sandbox.confine import Setup
from lmms_eval.sandbox.layer import (
    BUBBLEWRAP,
    CONFINES,
    LANDLOCK,
    LIMITS,
    NAMESPACES,
    NO_NEW_PRIVILEGES,
    SECCOMP,
    Layer,
)
from lmms_eval.sandbox.namespaces import WORK, outermost

PROBE_TIMEOUT_S = 30.0
CHILD = Path(__file__).with_name("child.py")
_DETAILS = {
    NAMESPACES: "own users, mounts (a root of read-only folders), network (none), processes",
    LANDLOCK: "files by rules of the kernel",
    SECCOMP: "system calls: no socket, no process, no signal to others",
    NO_NEW_PRIVILEGES: "no privilege can be gained",
    LIMITS: "processor time, memory, files, output, wall clock",
    BUBBLEWRAP: "own users, mounts, network, processes through the bwrap program",
}


@functools.cache
def probe_layers() -> tuple[Layer, ...]:
    """All layers, tried once for this process (0.1 s)."""
    if sys.platform != "linux":
        absent = f"not on {sys.platform}"
        return (*(Layer(name, False, absent) for name in CONFINES if name != LIMITS), _limits())
    with tempfile.TemporaryDirectory(prefix="lmms-eval-sandbox-") as empty:
        setup = Setup(empty)
        reasons = _ask(interpreter(), setup)
        layers = [_layer(name, reason) for name, reason in reasons.items()]
        if reasons.get(NAMESPACES):
            layers.append(probe_bubblewrap(setup))
        else:
            layers.append(Layer(BUBBLEWRAP, False, "not needed"))
    return (*layers, _limits())


def _limits() -> Layer:
    return Layer(LIMITS, True, _DETAILS[LIMITS])


def _layer(name: str, reason: str) -> Layer:
    return Layer(name, not reason, reason or _DETAILS[name])


def probe_bubblewrap(setup: Setup) -> Layer:
    """Whether bubblewrap can confine where this process itself may make no namespaces (it may be privileged)."""
    program = shutil.which("bwrap")
    if program is None:
        return Layer(BUBBLEWRAP, False, "no program bwrap")
    inside = Setup(setup.empty, enclosed=True)
    return _layer(BUBBLEWRAP, _ask(bubblewrap(program, inside), inside)[BUBBLEWRAP])


def _ask(command: Sequence[str], setup: Setup) -> Mapping[str, str]:
    names = (BUBBLEWRAP,) if setup.enclosed else (NAMESPACES, LANDLOCK, SECCOMP, NO_NEW_PRIVILEGES)
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            request = json.dumps({"setup": asdict(setup), "probe": server.getsockname()[1]}) + "\n"
            done = subprocess.run(
                command,
                input=request.encode(),
                capture_output=True,
                timeout=PROBE_TIMEOUT_S,
                env=clean_environment(),
                check=True,
            )
        found: dict[str, Any] = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return dict.fromkeys(names, f"the attempt failed: {error}")
    return {name: str(found[name]) for name in names}


def interpreter() -> list[str]:
    """The command of the child, without virtual environment and site packages.

    ``-I`` would also switch off the fixed hash seed; the environment is ours anyway.
    """
    return [os.path.realpath(sys.executable), "-P", "-s", "-S", "-B", "-X", "utf8", str(CHILD)]


def bubblewrap(program: str, setup: Setup) -> list[str]:
    """The child's command inside of bubblewrap, with the interpreter and this package visible to it."""
    seen = [*setup.readable, os.path.realpath(sys.executable), str(CHILD.parent), str(CHILD.parents[1] / "__init__.py")]
    command = [program, "--unshare-all", "--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL"]
    for path in outermost(seen):
        command += ["--ro-bind", path, path]
    for path in setup.devices:
        command += ["--dev-bind", path, path]
    return [*command, "--dir", WORK, "--remount-ro", "/", "--chdir", WORK, *interpreter()]


def clean_environment() -> dict[str, str]:
    """What programs find in their environment; nothing of ours."""
    return {
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": "/nonexistent",
        "PYTHONHASHSEED": "0",
        "OPENBLAS_NUM_THREADS": "1",
    }
