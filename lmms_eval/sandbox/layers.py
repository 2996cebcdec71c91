"""The layers of confinement that this machine offers, found by trying them."""

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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from lmms_eval.sandbox.confine import Setup
from lmms_eval.sandbox.namespaces import WORK, outermost
from lmms_eval.sandbox.threads import ROOM, ROOM_AMONG_OTHERS

Confined = Literal["files", "network", "processes", "resources"]
NAMESPACES, LANDLOCK, SECCOMP, BUBBLEWRAP = "namespaces", "landlock", "seccomp", "bubblewrap"
NO_NEW_PRIVILEGES, THREADS, LIMITS = "no_new_privs", "threads", "limits"
CONFINES: Mapping[str, tuple[tuple[Confined, ...], str]] = {
    NAMESPACES: (
        ("files", "network"), "own users, mounts (a root of read-only folders), network (none), processes",
    ),
    BUBBLEWRAP: (
        ("files", "network"), "own mounts, network, processes (and users, but for root) through the bwrap program",
    ),
    LANDLOCK: (("files",), "files by rules of the kernel"),
    SECCOMP: (("network", "processes"), "system calls: no socket, no process, no signal to others"),
    NO_NEW_PRIVILEGES: ((), "no privilege can be gained"),
    THREADS: (
        ("resources",), f"at most {ROOM} a program, {ROOM_AMONG_OTHERS} where the user's other processes count, too",
    ),
    LIMITS: (("resources",), "processor time, memory, files, output, wall clock"),
}  # fmt: skip
"""What each layer confines, and its effect in words."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One way of the system to confine a program."""

    name: str
    active: bool
    detail: str
    """Effect of the layer on this machine, or the reason why it is not available."""

    @property
    def confines(self) -> tuple[Confined, ...]:
        return CONFINES[self.name][0] if self.active and self.name in CONFINES else ()


PROBE_TIMEOUT_S = 30.0
CHILD = Path(__file__).with_name("child.py")


@functools.cache
def probe_layers() -> tuple[Layer, ...]:
    """Return all layers, which are tried once per process (0.1 s)."""
    if sys.platform != "linux":
        absent = f"not on {sys.platform}"
        return (*(Layer(name, False, absent) for name in CONFINES if name != LIMITS), _layer(LIMITS))
    with tempfile.TemporaryDirectory(prefix="lmms-eval-sandbox-") as empty:
        setup = Setup(empty)
        reasons = _ask(interpreter(), setup)
        layers = {name: _layer(name, reason) for name, reason in reasons.items()}
        layers[BUBBLEWRAP] = Layer(BUBBLEWRAP, False, "not needed")
        if reasons[NAMESPACES]:
            layers |= {layer.name: layer for layer in probe_bubblewrap(setup)}
    return (*layers.values(), _layer(LIMITS))


def _layer(name: str, reason: str = "") -> Layer:
    if name == THREADS and reason:
        reason += "; programs have no threads"
    return Layer(name, not reason, reason or CONFINES[name][1])


def probe_bubblewrap(setup: Setup) -> tuple[Layer, ...]:
    """Try bubblewrap, which may be privileged, if this process itself may not create namespaces.

    If it works, also try whether threads are limited inside.
    """
    program = shutil.which("bwrap")
    if program is None:
        return (Layer(BUBBLEWRAP, False, "no program bwrap"),)
    inside = Setup(setup.empty, enclosed=True)
    reasons = _ask(bubblewrap(program, inside), inside)
    if reasons[BUBBLEWRAP]:
        return (_layer(BUBBLEWRAP, reasons[BUBBLEWRAP]),)
    return tuple(_layer(name, reason) for name, reason in reasons.items())


def _ask(command: Sequence[str], setup: Setup) -> Mapping[str, str]:
    names = (BUBBLEWRAP, THREADS) if setup.enclosed else (NAMESPACES, LANDLOCK, SECCOMP, NO_NEW_PRIVILEGES, THREADS)
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
    """Return the command of the child, without virtual environment and site packages.

    ``-I`` would also disable the fixed hash seed; the environment is clean anyway.
    """
    return [os.path.realpath(sys.executable), "-P", "-s", "-S", "-B", "-X", "utf8", str(CHILD)]


def bubblewrap(program: str, setup: Setup) -> list[str]:
    """Return the child's command inside bubblewrap, with the interpreter and this package visible to it."""
    seen = [*setup.readable, os.path.realpath(sys.executable), str(CHILD.parent), str(CHILD.parents[1] / "__init__.py")]
    command = [program, "--new-session", "--as-pid-1", "--cap-drop", "ALL"]
    if os.geteuid() == 0:  # a user namespace would contain only root, and the threads of root cannot be limited
        command += ["--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
        command += ["--cap-add", "CAP_SETUID"]
    else:
        command.append("--unshare-all")
    for path in outermost(seen):
        command += ["--ro-bind", path, path]
    for path in setup.devices:
        command += ["--dev-bind", path, path]
    return [*command, "--dir", WORK, "--remount-ro", "/", "--chdir", WORK, *interpreter()]


def clean_environment() -> dict[str, str]:
    """Return the environment of a program, which inherits nothing."""
    return {
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": "/nonexistent",
        "PYTHONHASHSEED": "0",
        "OPENBLAS_NUM_THREADS": "1",
        # Else each thread reserves 64 MiB of the address space, up to a number that depends on the machine's cores.
        "MALLOC_ARENA_MAX": "1",
    }
