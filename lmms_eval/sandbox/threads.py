"""The limit on a program's threads, and the user by whom the kernel counts them.

``RLIMIT_NPROC`` counts the threads of a (real) user, since Linux 5.14 those in one user namespace. It holds neither
root nor who may change limits: where it would not hold a program, the program's process becomes a user that is nobody.
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


def in_fork(action: Callable[[], None]) -> str:
    """Run ``action`` in a process of its own, with which its effects end; returns what it raised, empty if nothing."""
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
"""Threads that a program may have beside its first, for certain when it starts."""
ROOM_AMONG_OTHERS = 512
"""The most where the user's other processes count, too: these may start threads of their own meanwhile."""
_SANDBOX_ALONE = 4
"""Threads that are counted at most where only the sandbox's own processes are."""
_MOST_UNBOUND = 256
"""The limit where it is not known to hold: it still holds the processes of most users."""
_MOST_OF_ALL = 1 << 22
"""Threads that a kernel can have."""
_UNUSED_FROM, _UNUSED_BITS = 0x70000000, 27
"""User numbers above those that systemd and container managers give away."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The bound on a program's threads."""

    most: int
    """``RLIMIT_NPROC``."""
    user: int | None = None
    """The user that a program's process becomes; ``None``: it stays the sandbox child's."""
    reads_as_root: bool = False
    """True where it becomes that user only in the kernel's count, and reaches files as root (without capabilities)."""


def is_held() -> bool:
    """Tell whether the limit holds this process's own user once it has no capabilities, by overstepping it."""

    def overstep() -> None:
        _drop_capabilities()
        if _can_fork(0):
            raise RuntimeError("this user is not held")

    return not in_fork(overstep)


def unused_user() -> int:
    """A user number that nobody has; by chance, since other containers count the same numbers."""
    return _UNUSED_FROM + int.from_bytes(os.urandom(4)) % (1 << _UNUSED_BITS)


def find_bound(user: int | None, readable: Iterable[str]) -> Bound:
    """Find the bound for programs, in the sandbox child. ``user``: whom they become, ``None`` where the child is held.

    Where it is held, its own forks fail from now on as soon as the user has so many threads that a program would have
    less than ``ROOM``; the bound must then be found again.

    Raises:
        OSError: no process can be started, or none become ``user``.
    """
    if user is not None:
        return _bound_as(user, readable)
    _drop_capabilities()
    count = _count_threads()
    most = count + (ROOM if count <= _SANDBOX_ALONE else ROOM_AMONG_OTHERS)
    _set_soft_limit(most - ROOM)
    return Bound(most)


def hold(bound: Bound | None) -> None:
    """Bound this process, for good, and give up its privileges (but that of reading, as another user than root)."""
    if sys.platform == "linux":
        if bound is None:
            with contextlib.suppress(OSError):  # an unknown processor; the filter then refuses to be built, too
                _drop_capabilities()
        elif bound.user is None:
            _drop_capabilities()
        elif bound.reads_as_root:
            os.setresuid(bound.user, -1, -1)
            _drop_capabilities()
        else:
            # Another user and group, who can read what root can: its interpreter may lie in a folder of root alone.
            bound_capabilities()
            prctl(PR_SET_KEEPCAPS, 1)
            os.setgroups([])
            os.setresgid(bound.user, bound.user, bound.user)
            os.setresuid(bound.user, bound.user, bound.user)
            set_capabilities(CAP_DAC_READ_SEARCH)
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    most = _at_most(_MOST_UNBOUND if bound is None else bound.most, hard)
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def _bound_as(user: int, readable: Iterable[str]) -> Bound:
    """Try to become the user, since a program whose process failed at this would seem to have failed itself."""
    bound = Bound(1 + ROOM, user)
    # This process must be able to end what has become another user's.
    if has_capability(CAP_KILL) and not in_fork(lambda: _read_under(bound, readable)):
        return bound
    bound = replace(bound, reads_as_root=True)
    problem = in_fork(lambda: _read_under(bound, readable))
    if problem:
        raise OSError(f"no process can become an unused user: {problem}")
    return bound


def _read_under(bound: Bound, readable: Iterable[str]) -> None:
    hold(bound)
    for path in readable:
        if os.path.isdir(path):
            os.listdir(path)
        else:
            os.close(os.open(path, os.O_RDONLY))


def _drop_capabilities() -> None:
    bound_capabilities()
    set_capabilities()


def _count_threads() -> int:
    """Count the threads of this user and of a process that it starts, as the kernel does.

    The number is the lowest limit under which the process can start one.

    ``/proc`` would not show those of the same user in another container, and is not there in the namespaces.
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
