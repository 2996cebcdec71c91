"""The layers put together: what the sandbox child switches on, once for itself and again for every program."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lmms_eval.sandbox import landlock, namespaces, seccomp
from lmms_eval.sandbox.linux import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_DUMPABLE,
    PR_SET_NO_NEW_PRIVS,
    PR_SET_PDEATHSIG,
    drop_capabilities,
    prctl,
)

SIGKILL = 9
MOST_PROCESSES = 256
"""Of the user, where no filter forbids a program to start processes."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/usr/share/zoneinfo")


@dataclass(frozen=True, slots=True)
class Setup:
    """What the child is told when it starts."""

    empty: str
    """An empty folder of its own: the programs' working folder, or the place of their root."""
    packages: tuple[str, ...] = ()
    """Folders that can be imported beside the standard library."""
    namespaces: bool = False
    enclosed: bool = False
    """It was started inside namespaces (bubblewrap)."""
    landlock: bool = False
    seccomp: bool = False

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Setup:
        return cls(**{**values, "packages": tuple(values["packages"])})

    @property
    def readable(self) -> list[str]:
        """The standard library, shared libraries and packages, as far as they exist."""
        # Not sys.path: in the parent it names the user's own folders.
        interpreter = [os.path.join(prefix, "lib") for prefix in (sys.base_prefix, sys.base_exec_prefix)]
        places = [*interpreter, os.path.dirname(os.__file__)]
        return [path for path in dict.fromkeys((*places, *_LIBRARIES, *self.packages)) if os.path.exists(path)]

    @property
    def devices(self) -> list[str]:
        return [path for path in DEVICES if os.path.exists(path)]


def enclose(setup: Setup) -> None:
    """Once, in the sandbox child: namespaces, and children whose parent dies fall to this process."""
    if sys.platform == "linux":
        prctl(PR_SET_CHILD_SUBREAPER, 1)
    os.chdir(namespaces.WORK if setup.enclosed else setup.empty)
    if setup.namespaces:
        namespaces.enter(setup.readable, setup.devices, setup.empty)


def restrict(setup: Setup, limits: Mapping[str, int]) -> None:
    """For every program, in its own process, the last thing before it runs. Nothing of it can be undone."""
    if sys.platform == "linux":
        prctl(PR_SET_PDEATHSIG, SIGKILL)
    _set_limits(setup, limits)
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError):  # an unknown processor; the filter then refuses to be built, too
        drop_capabilities()
    prctl(PR_SET_DUMPABLE, 0)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    if setup.landlock:
        folders = [".", *setup.readable]
        listable = {os.path.dirname(package) for package in setup.packages}
        landlock.restrict(folders, sorted(listable), setup.devices)
    if setup.seccomp:
        seccomp.install()


def _set_limits(setup: Setup, limits: Mapping[str, int]) -> None:
    """Hard limits, where the present one is not lower. The processor's soft limit tells its own end from others."""
    wanted = {
        resource.RLIMIT_CPU: limits["cpu_s"] + 1,
        resource.RLIMIT_AS: limits["memory_bytes"],
        resource.RLIMIT_NOFILE: limits["open_files"],
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
    }
    if not setup.seccomp:
        wanted[resource.RLIMIT_NPROC] = MOST_PROCESSES
    for kind, value in wanted.items():
        present = resource.getrlimit(kind)[1]
        value = value if present == resource.RLIM_INFINITY else min(value, present)
        soft = min(limits["cpu_s"], value) if kind == resource.RLIMIT_CPU else value
        resource.setrlimit(kind, (soft, value))


def in_fork(action: Callable[[], None]) -> str:
    """What ``action`` raised in a process of its own, empty if nothing: its effects end with that process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            text = ""
            try:
                action()
            except (OSError, RuntimeError) as error:
                text = str(error) or type(error).__name__
            os.write(writing, text.encode()[:1000])
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return text or ("" if status == 0 else f"the attempt ended with status {status}")
