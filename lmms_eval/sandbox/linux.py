"""System calls that Python does not offer, through ctypes. Used in the sandbox child and by the probe."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
from dataclasses import dataclass

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_KEEPCAPS, PR_CAPBSET_DROP = 1, 4, 8, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38
CAP_DAC_READ_SEARCH, CAP_KILL, CAP_SETGID, CAP_SETUID = 2, 5, 6, 7
_CAPABILITY_VERSION = 0x20080522
_LAST_CAPABILITY = 63
_THREAD_OF_THIS_PROCESS = 0x50F00
"""Flags of a thread that shares memory, files, signal handlers and process."""

_libc = ctypes.CDLL(None, use_errno=True)
_stacks: list[ctypes.Array[ctypes.c_char]] = []
"""Stacks of bare threads, kept until the process ends."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """Numbers that differ between processors."""

    audit: int
    """``AUDIT_ARCH_...``: a seccomp filter recognises the table of system calls by it."""
    column: int
    """Column in the tables of system calls in ``seccomp.py``."""
    capget: int
    capset: int
    pivot_root: int


_ARCHITECTURES = {
    "x86_64": Architecture(0xC000003E, 0, capget=125, capset=126, pivot_root=155),
    "aarch64": Architecture(0xC00000B7, 1, capget=90, capset=91, pivot_root=41),
}


def architecture() -> Architecture:
    """Return this machine's architecture. Raises ``OSError`` if its numbers are not known."""
    found = _ARCHITECTURES.get(platform.machine())
    if found is None or ctypes.sizeof(ctypes.c_void_p) != 8:
        raise OSError(f"no table of system calls for {platform.machine()}")
    return found


def checked(result: int, what: str) -> int:
    """Return the result of a C call. Raises ``OSError`` for -1."""
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def syscall(number: int, *arguments: int | ctypes.Array[ctypes.c_char] | bytes | None) -> int:
    """Make a system call by number; integers are passed as 64-bit values."""
    wide = [ctypes.c_long(item) if isinstance(item, int) else item for item in arguments]
    _libc.syscall.restype = ctypes.c_long
    return checked(_libc.syscall(ctypes.c_long(number), *wide), f"system call {number}")


def prctl(option: int, *values: int | ctypes.Structure) -> int:
    arguments = [ctypes.c_ulong(item) if isinstance(item, int) else ctypes.byref(item) for item in values]
    arguments += [ctypes.c_ulong(0)] * (4 - len(arguments))
    return checked(_libc.prctl(ctypes.c_int(option), *arguments), f"prctl {option}")


def unshare(flags: int) -> None:
    checked(_libc.unshare(ctypes.c_int(flags)), "unshare")


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    result = _libc.mount(
        *(ctypes.c_char_p(text) for text in texts[:3]), ctypes.c_ulong(flags), ctypes.c_char_p(texts[3])
    )
    checked(result, f"mount {target}")


def unmount(target: str, flags: int) -> None:
    checked(_libc.umount2(ctypes.c_char_p(os.fsencode(target)), ctypes.c_int(flags)), f"unmount {target}")


def start_bare_thread() -> None:
    """Start an idle thread by the bare system call, unknown to Python and the C library.

    It exists until its process ends. Raises ``OSError``.
    """
    stack = ctypes.create_string_buffer(1 << 12)
    _stacks.append(stack)
    top = ctypes.c_void_p(ctypes.addressof(stack) + len(stack) & -16)
    pause = ctypes.cast(_libc.pause, ctypes.c_void_p)
    checked(_libc.clone(pause, top, ctypes.c_int(_THREAD_OF_THIS_PROCESS), None), "clone")


def bound_capabilities() -> None:
    """Permanently give up the capabilities that a program file could grant this process."""
    for number in range(_LAST_CAPABILITY + 1):
        with contextlib.suppress(OSError):  # the kernel has fewer, or this process never had them
            prctl(PR_CAPBSET_DROP, number)


def has_capability(number: int) -> bool:
    """Return whether this process has a capability (0 to 31)."""
    sets = (ctypes.c_uint32 * 6)()
    _capability_call(architecture().capget, sets)
    return bool(sets[0] >> number & 1)


def set_capabilities(*numbers: int) -> None:
    """Give up all capabilities of this process but ``numbers`` (0 to 31). Raises ``OSError`` if it lacks these."""
    mask = sum(1 << number for number in numbers)
    _capability_call(architecture().capset, (ctypes.c_uint32 * 6)(mask, mask))


def _capability_call(number: int, sets: ctypes.Array[ctypes.c_uint32]) -> None:
    """Call capget or capset; ``sets`` are effective, permitted, inheritable, of the first 32 and then of the others."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    _libc.syscall.restype = ctypes.c_long
    checked(_libc.syscall(ctypes.c_long(number), ctypes.byref(header), ctypes.byref(sets)), f"system call {number}")
