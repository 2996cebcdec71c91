"""System calls that Python does not offer, through ctypes. Used in the sandbox child and by the probe."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
from dataclasses import dataclass

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP = 1, 4, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38
_CAPABILITY_VERSION = 0x20080522
_LAST_CAPABILITY = 63

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Architecture:
    """Numbers that differ between processors."""

    audit: int
    """``AUDIT_ARCH_...``, by which a seccomp filter tells system call tables apart."""
    column: int
    """Of the tables of system calls in ``seccomp.py``."""
    capset: int
    pivot_root: int


_ARCHITECTURES = {
    "x86_64": Architecture(0xC000003E, 0, capset=126, pivot_root=155),
    "aarch64": Architecture(0xC00000B7, 1, capset=91, pivot_root=41),
}


def architecture() -> Architecture:
    """Of this machine. Raises ``OSError`` where its numbers are not known."""
    found = _ARCHITECTURES.get(platform.machine())
    if found is None or ctypes.sizeof(ctypes.c_void_p) != 8:
        raise OSError(f"no table of system calls for {platform.machine()}")
    return found


def checked(result: int, what: str) -> int:
    """The result of a C call. Raises ``OSError`` for -1."""
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def syscall(number: int, *arguments: int | ctypes.Array[ctypes.c_char] | bytes | None) -> int:
    """A system call by number; integers are passed as 64-bit values."""
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


def drop_capabilities() -> None:
    """Give up every privilege of this process, for good."""
    for number in range(_LAST_CAPABILITY + 1):
        with contextlib.suppress(OSError):  # the kernel has fewer, or this process had none to begin with
            prctl(PR_CAPBSET_DROP, number)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    none = (ctypes.c_uint32 * 6)()
    _libc.syscall.restype = ctypes.c_long
    call = ctypes.c_long(architecture().capset)
    checked(_libc.syscall(call, ctypes.byref(header), ctypes.byref(none)), "capset")
