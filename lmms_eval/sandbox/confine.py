"""The layers of confinement that the sandbox child enables, once for itself and again for every program."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lmms_eval.sandbox import landlock, namespaces, seccomp, threads
from lmms_eval.sandbox.linux import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_DUMPABLE,
    PR_SET_NO_NEW_PRIVS,
    PR_SET_PDEATHSIG,
    prctl,
)

SIGKILL = 9
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/usr/share/zoneinfo")


@dataclass(frozen=True, slots=True)
class Setup:
    """Instructions to the child when it starts."""

    empty: str
    """An empty folder: the programs' working folder, or the mount point of their root."""
    packages: tuple[str, ...] = ()
    """Folders of packages that can be imported in addition to the standard library."""
    namespaces: bool = False
    enclosed: bool = False
    """True for a child that was started inside namespaces (bubblewrap)."""
    landlock: bool = False
    seccomp: bool = False
    threads: bool = False
    """The number of threads is limited. Otherwise the filter allows no threads."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Setup:
        return cls(**{**values, "packages": tuple(values["packages"])})

    @property
    def readable(self) -> list[str]:
        """The existing paths of the standard library, shared libraries and packages."""
        # Not sys.path: in the parent it names the user's own folders.
        interpreter = [os.path.join(prefix, "lib") for prefix in (sys.base_prefix, sys.base_exec_prefix)]
        places = [*interpreter, os.path.dirname(os.__file__)]
        return [path for path in dict.fromkeys((*places, *_LIBRARIES, *self.packages)) if os.path.exists(path)]

    @property
    def devices(self) -> list[str]:
        return [path for path in DEVICES if os.path.exists(path)]


def enclose(setup: Setup) -> int | None:
    """Confine the sandbox child itself, once: enter namespaces, and adopt children whose parent dies.

    Returns the user that programs become; ``None`` if they keep this process's user.
    """
    if sys.platform == "linux":
        prctl(PR_SET_CHILD_SUBREAPER, 1)
    if setup.enclosed:  # bwrap's own --die-with-parent would end it with the thread that started it
        prctl(PR_SET_PDEATHSIG, SIGKILL)
    os.chdir(namespaces.WORK if setup.enclosed else setup.empty)
    user = threads.unused_user() if setup.threads and not threads.limit_applies() else None
    if not setup.namespaces:
        return user
    namespaces.enter(setup.readable, setup.devices, setup.empty, user)
    return None if user is None else namespaces.INSIDE_ID


def make_rules(setup: Setup) -> int | None:
    """Return the descriptor of Landlock's rules for all programs of an enclosed sandbox child; ``None`` without it."""
    if not setup.landlock:
        return None
    listable = {os.path.dirname(package) for package in setup.packages}
    return landlock.make_rules([".", *setup.readable], sorted(listable), setup.devices)


def restrict(setup: Setup, limits: Mapping[str, int], bound: threads.Bound | None, rules: int | None) -> None:
    """Restrict a program in its own process, just before it runs. Nothing can be undone."""
    threads.apply_bound(bound)
    if sys.platform == "linux":
        prctl(PR_SET_PDEATHSIG, SIGKILL)  # after the change of user, which would undo it
    # The soft CPU limit makes an end by CPU time recognisable.
    wanted = {
        resource.RLIMIT_CPU: limits["cpu_s"] + 1,
        resource.RLIMIT_AS: limits["memory_bytes"],
        resource.RLIMIT_NOFILE: limits["open_files"],
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
    }
    for kind, value in wanted.items():
        present = resource.getrlimit(kind)[1]
        value = value if present == resource.RLIM_INFINITY else min(value, present)
        soft = min(limits["cpu_s"], value) if kind == resource.RLIMIT_CPU else value
        resource.setrlimit(kind, (soft, value))
    if sys.platform != "linux":
        return
    prctl(PR_SET_DUMPABLE, 0)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    if rules is not None:
        landlock.restrict(rules)
    if setup.seccomp:
        seccomp.install(allow_threads=bound is not None)
