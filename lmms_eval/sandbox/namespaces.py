"""Namespaces of an unprivileged user: a network without interfaces, a root folder of a few read-only mounts."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable, Sequence

from lmms_eval.sandbox.linux import architecture, mount, syscall, unmount, unshare

_NEW_MOUNTS, _NEW_UTS, _NEW_IPC = 0x00020000, 0x04000000, 0x08000000
_NEW_USER, _NEW_PROCESSES, _NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000
_ALL_NEW = _NEW_USER | _NEW_MOUNTS | _NEW_NETWORK | _NEW_IPC | _NEW_UTS | _NEW_PROCESSES
_READ_ONLY, _NO_SUID, _NO_DEVICES, _REMOUNT, _BIND = 1, 2, 4, 32, 4096
_RECURSIVE, _PRIVATE = 16384, 1 << 18
_DETACH = 2
_MOUNT_SETATTR = 442
_CURRENT_FOLDER, _AT_RECURSIVE = -100, 0x8000
INSIDE_ID = 65534
"""User and group number of programs inside."""
WORK = "/lmms-eval-work"


def enter(readable: Sequence[str], devices: Sequence[str], empty: str, user: int | None = None) -> None:
    """Move this process into namespaces of its own; its next child becomes process 1 of the new process namespace.

    The new root is mounted over the folder ``empty``, so that no files remain outside. The paths ``readable`` stay
    visible, read-only. The current folder becomes an empty one. This process becomes ``INSIDE_ID`` or, with ``user``,
    root: then that user outside becomes ``INSIDE_ID``. Raises ``OSError`` if the kernel or its settings forbid it.
    """
    if user is None:
        own, group = os.geteuid(), os.getegid()
        unshare(_ALL_NEW)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{INSIDE_ID} {own} 1")
        _write("/proc/self/gid_map", f"{INSIDE_ID} {group} 1")
    else:
        _unshare_with(user)
    mount(None, "/", None, _RECURSIVE | _PRIVATE)
    mount("tmpfs", empty, "tmpfs", _NO_SUID | _NO_DEVICES, "size=1m,mode=0755")
    for path in outermost(readable):
        _bind(path, empty, _READ_ONLY | _NO_SUID | _NO_DEVICES)
    for path in devices:
        _bind(path, empty, _NO_SUID)
    os.mkdir(empty + WORK, 0o555)
    os.chdir(empty)
    syscall(architecture().pivot_root, b".", b".")
    unmount(".", _DETACH)
    mount(None, "/", None, _REMOUNT | _BIND | _READ_ONLY | _NO_SUID | _NO_DEVICES)
    os.chdir(WORK)


def _unshare_with(user: int) -> None:
    """Map two users, root and ``user``, to the inside; only a process that stays outside may write such a map."""
    process = os.getpid()
    reading, writing = os.pipe()
    helper = os.fork()
    if helper == 0:
        status = 1
        try:
            os.close(writing)
            os.read(reading, 1)
            for kind, own in (("uid", os.geteuid()), ("gid", os.getegid())):
                _write(f"/proc/{process}/{kind}_map", f"0 {own} 1\n{INSIDE_ID} {user} 1\n")
            status = 0
        except OSError as error:
            status = error.errno or status
        finally:
            os._exit(status)
    os.close(reading)
    try:
        unshare(_ALL_NEW)
    finally:
        os.close(writing)
        _, ended = os.waitpid(helper, 0)
    status = os.waitstatus_to_exitcode(ended)
    if status:
        raise OSError(status, f"mapping users: {os.strerror(status)}")


def outermost(paths: Iterable[str]) -> list[str]:
    """Return the paths that do not lie inside another one."""
    kept: list[str] = []
    for path in sorted({os.path.normpath(path) for path in paths}):
        if not any(path.startswith(outer + os.sep) for outer in kept):
            kept.append(path)
    return kept


def _bind(path: str, root: str, attributes: int) -> None:
    """Show ``path`` below ``root``; ``MS_RDONLY`` and the like have the same numbers in ``mount_setattr``."""
    target = root + path
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o444))
    mount(path, target, None, _BIND | _RECURSIVE)
    change = ctypes.create_string_buffer(struct.pack("QQQQ", attributes, 0, 0, 0), 32)
    syscall(_MOUNT_SETATTR, _CURRENT_FOLDER, os.fsencode(target), _AT_RECURSIVE, change, 32)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
