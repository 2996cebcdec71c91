"""Tries every layer in its own process, and tries to get past it. Runs in the sandbox child."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace

from lmms_eval.sandbox import landlock, namespaces, seccomp, threads
from lmms_eval.sandbox.confine import Setup, enclose
from lmms_eval.sandbox.linux import PR_SET_NO_NEW_PRIVS, prctl, start_bare_thread
from lmms_eval.sandbox.threads import in_fork

_OUTSIDE = "/etc"


class Leak(RuntimeError):
    """A layer could be enabled but does not hold."""


def probe(setup: Setup, port: int) -> Mapping[str, str]:
    """Try each layer; return the reason why it cannot be used, or empty text if it works.

    A server listens on ``port`` of the loopback device.
    """
    attempts: dict[str, Callable[[], object]] = {
        "namespaces": lambda: _try_namespaces(setup, port),
        "landlock": lambda: _try_landlock(setup),
        "seccomp": _try_seccomp,
        "no_new_privs": lambda: prctl(PR_SET_NO_NEW_PRIVS, 1),
    }
    reasons = {name: in_fork(action) for name, action in attempts.items()}
    inside = replace(setup, namespaces=not reasons["namespaces"])
    return {**reasons, "threads": in_fork(lambda: _try_threads(inside))}


def probe_enclosed(setup: Setup, port: int) -> Mapping[str, str]:
    """Try inside bubblewrap whether files and network are out of reach, and whether threads are limited."""
    reasons = {"bubblewrap": "", "threads": in_fork(lambda: _try_threads(setup))}
    try:
        _look_around(port)
    except (OSError, RuntimeError) as error:
        reasons["bubblewrap"] = str(error)
    return reasons


def _try_namespaces(setup: Setup, port: int) -> None:
    namespaces.enter(setup.readable, setup.devices, setup.empty)
    _try_in_fork(lambda: _look_around(port))


def _try_in_fork(action: Callable[[], None]) -> None:
    """Run ``action`` in a process of its own. Raises ``Leak`` with the text of its error."""
    if problem := in_fork(action):
        raise Leak(problem)


def _look_around(port: int) -> None:
    if os.getpid() != 1:
        raise Leak("processes of the machine are visible")
    if os.path.exists(_OUTSIDE + "/passwd"):
        raise Leak("files of the machine are visible")
    _no_files_made(namespaces.WORK)
    with socket.socket() as connection:
        connection.settimeout(0.5)
        if connection.connect_ex(("127.0.0.1", port)) == 0:
            raise Leak("the network of the machine can be reached")


def _try_landlock(setup: Setup) -> None:
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    landlock.restrict(landlock.make_rules(setup.readable, [], setup.devices))
    os.listdir(os.path.dirname(os.__file__))
    try:
        os.listdir(_OUTSIDE)
    except PermissionError:
        _no_files_made(setup.empty)
        return
    raise Leak("files outside of the allowed folders can be read")


def _no_files_made(folder: str) -> None:
    try:
        os.mkdir(os.path.join(folder, "probe"))
    except OSError:
        return
    raise Leak("a folder could be made")


def _try_seccomp() -> None:
    seccomp.install()
    for what, attempt in (("a socket", socket.socket), ("a process", os.fork)):
        try:
            attempt()
        except OSError as error:
            if error.errno == errno.EPERM:
                continue
            raise
        raise Leak(f"{what} could be made")


def _try_threads(setup: Setup) -> None:
    """Try the limit in the surroundings that programs will have."""
    user = enclose(replace(setup, threads=True))

    def make_threads() -> None:
        bound = threads.find_bound(user, setup.readable)
        _try_in_fork(lambda: _exceed(bound))

    _try_in_fork(make_threads)


def _exceed(bound: threads.Bound) -> None:
    """Start more threads than ``bound`` allows, by the bare system call."""
    threads.apply_bound(bound)
    for made in range(bound.most):  # the process's first thread is one of them
        try:
            start_bare_thread()
        except BlockingIOError:
            if made:
                return
            raise
    raise Leak("more threads could be started than the limit allows")
