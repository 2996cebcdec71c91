"""The limit on a program's threads, and the user that the kernel counts them for.

``RLIMIT_NPROC`` counts the threads of a (real) user, since Linux 5.14 those in one user namespace. It does not apply to
root or to users who may change limits. A program that it would not apply to switches to an unused user.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from lmms_eval.sandbox.linux import (
    CAP_DAC_READ_SEARCH,
    CAP_KILL,
    PR_SET_KEEPCAPS,
    bound_capabilities,
    has_capability,
    prctl,
    set_capabilities,
)


def in_fork(action: Callable[[], object]) -> str:
    """Run ``action`` in a process of its own. Return its error as text, which is empty if it succeeded."""
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


ROOM = 64
"""Threads that a program may have in addition to its first; guaranteed when it starts."""
ROOM_AMONG_OTHERS = 512
"""The limit if the user's other processes count too, since they may start threads meanwhile."""
_SANDBOX_ALONE = 4
"""The largest count of threads if only the sandbox's own processes exist."""
_MOST_UNBOUND = 256
"""The limit if it is not known to apply; it still applies to the processes of most users."""
_MOST_OF_ALL = 1 << 22
"""The most threads that a kernel can have."""
_UNUSED_FROM, _UNUSED_BITS = 0x70000000, 27
"""User numbers above those that systemd and container managers give away."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The bound on a program's threads."""

    most: int
    """``RLIMIT_NPROC``."""
    user: int | None = None
    """The user that a program's process becomes; ``None``: it keeps the sandbox child's."""
    reads_as_root: bool = False
    """The process becomes that user only in the kernel's count, and reads files as root (without capabilities)."""


def limit_applies() -> bool:
    """Return whether the limit applies to this process's user without capabilities. Tries to exceed it."""

    def exceed() -> None:
        _drop_capabilities()
        if _can_fork(0):
            raise RuntimeError("this user is not held")

    return not in_fork(exceed)


def unused_user() -> int:
    """Return a user number that is not in use; it is random, since other containers share the numbers."""
    return _UNUSED_FROM + int.from_bytes(os.urandom(4)) % (1 << _UNUSED_BITS)


def find_bound(user: int | None, readable: Iterable[str]) -> Bound:
    """Find the bound for programs, in the sandbox child. Programs must be able to read the paths ``readable``.

    Without ``user``, the limit applies to the child itself: its own forks fail from now on as soon as the user has so
    many threads that a program would have less than ``ROOM``. The bound must then be found again. Raises ``OSError`` if
    no process can be started, or if it cannot become ``user``.
    """
    if user is not None:
        bound_capabilities()  # here and not in every program: its process inherits it
        # Becoming the user is tried in advance: a failure in a program's process would look like the program's own.
        bound = Bound(1 + ROOM, user)
        # This process must be able to kill processes of the other user.
        if has_capability(CAP_KILL) and not in_fork(lambda: _read_under(bound, readable)):
            return bound
        bound = replace(bound, reads_as_root=True)
        problem = in_fork(lambda: _read_under(bound, readable))
        if problem:
            raise OSError(f"no process can become an unused user: {problem}")
        return bound
    _drop_capabilities()
    count = _count_threads()
    most = count + (ROOM if count <= _SANDBOX_ALONE else ROOM_AMONG_OTHERS)
    _set_soft_limit(most - ROOM)
    return Bound(most)


def apply_bound(bound: Bound | None) -> None:
    """Limit this process permanently, and give up its privileges (except reading, if it becomes another user)."""
    if sys.platform == "linux":
        if bound is None:
            with contextlib.suppress(OSError):  # an unknown processor: the filter cannot be built either
                _drop_capabilities()
        elif bound.user is None:
            set_capabilities()
        elif bound.reads_as_root:
            os.setresuid(bound.user, -1, -1)
            set_capabilities()
        else:
            # Another user and group that can read what root can: the interpreter may lie in a folder of root's.
            prctl(PR_SET_KEEPCAPS, 1)
            os.setgroups([])
            os.setresgid(bound.user, bound.user, bound.user)
            os.setresuid(bound.user, bound.user, bound.user)
            set_capabilities(CAP_DAC_READ_SEARCH)
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    most = _at_most(_MOST_UNBOUND if bound is None else bound.most, hard)
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def _read_under(bound: Bound, readable: Iterable[str]) -> None:
    apply_bound(bound)
    for path in readable:
        if os.path.isdir(path):
            os.listdir(path)
        else:
            os.close(os.open(path, os.O_RDONLY))


def _drop_capabilities() -> None:
    bound_capabilities()
    set_capabilities()


def _count_threads() -> int:
    """Count the threads of this user, including a process that it starts, as the kernel does.

    The count is the lowest limit that lets this process start another. ``/proc`` would not show threads of the
    same user in another container, and is not mounted in the namespaces.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    top = _at_most(_MOST_OF_ALL, hard)
    low, high = 0, 1
    while not _can_fork(high):
        if high >= top:
            raise OSError(f"no process can be started, though the user may have {top}")
        low, high = high, min(2 * high, top)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _can_fork(middle) else (middle, high)
    return high


def _can_fork(limit: int) -> bool:
    _set_soft_limit(limit)
    try:
        child = os.fork()
    except BlockingIOError:
        return False
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return True


def _set_soft_limit(value: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    resource.setrlimit(resource.RLIMIT_NPROC, (_at_most(value, hard), hard))


def _at_most(value: int, hard: int) -> int:
    return value if hard == resource.RLIM_INFINITY else min(value, hard)
