"""Landlock: the kernel denies access to every file, TCP port and outside process that no rule allows."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable

from lmms_eval.sandbox.linux import syscall

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_VERSION_FLAG, _PATH_BENEATH = 1, 1
_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
"""Number of rights by the first ABI version that has them."""
_NETWORK_ABI, _SCOPE_ABI = 4, 6


def abi() -> int:
    """Return the version of Landlock in this kernel. Raises ``OSError`` if the kernel lacks it or it is disabled."""
    return syscall(_CREATE, None, 0, _VERSION_FLAG)


def make_rules(folders: Iterable[str], listable: Iterable[str], devices: Iterable[str]) -> int:
    """Return the descriptor of rules: reading ``folders``, listing ``listable``, reading and writing ``devices``.

    Nothing else can be opened, created, removed or run, no TCP port can be used, and no outside process can be
    signalled (as far as the kernel's version supports it). Raises ``OSError``.
    """
    version = abi()
    rights = (1 << max(count for least, count in _FILE_RIGHTS.items() if least <= version)) - 1
    values = [rights, 0b11, 0b11]
    size = 24 if version >= _SCOPE_ABI else 16 if version >= _NETWORK_ABI else 8
    attributes = ctypes.create_string_buffer(struct.pack("QQQ", *values)[:size], size)
    rules = syscall(_CREATE, attributes, size, 0)
    try:
        for path in folders:
            _allow(rules, path, _READ_FILE | (_READ_DIR if os.path.isdir(path) else 0))
        for path in listable:
            _allow(rules, path, _READ_DIR)
        for path in devices:
            _allow(rules, path, _READ_FILE | _WRITE_FILE)
    except OSError:
        os.close(rules)
        raise
    return rules


def restrict(rules: int) -> None:
    """From now on allow this process only what the rules allow. Needs no_new_privs. Raises ``OSError``."""
    syscall(_RESTRICT, rules, 0)


def _allow(rules: int, path: str, rights: int) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, descriptor), 12)
        syscall(_ADD_RULE, rules, _PATH_BENEATH, rule, 0)
    finally:
        os.close(descriptor)
