"""Several processes of one command on this machine, without a launcher (``--processes``)."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from lmms_eval.cli.output import complain
from lmms_eval.engine.team import HOST, StoreServer

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
POLL_S = 0.02
PATIENCE_S = 30.0
"""Seconds for the others when one has failed; after that they are killed."""


def run_processes(arguments: Sequence[str], count: int) -> int:
    """Start ``count`` processes of a command line as ranks 0 to ``count - 1`` and wait for them.

    All write to this process's standard streams; the first one prints the results. Signals go to all. When one fails
    before the first one has ended, the others are told to end as by SIGTERM.

    Returns:
        The first process's exit code, or that of the one that failed before it (128 + n: killed by signal n).
    """
    children: list[subprocess.Popen[bytes]] = []
    with StoreServer() as store, forwarding(children):
        environment = {**os.environ, **_common(count), **store.environment}
        try:
            for rank in range(count):
                child = subprocess.Popen(
                    [sys.executable, "-m", "lmms_eval", *arguments],
                    env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                    stdin=None if rank == 0 else subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl-C reaches this process alone, which hands it on once
                )
                children.append(child)
            return _wait(children)
        finally:
            for child in children:
                if child.poll() is None:
                    child.kill()
                    child.wait()


def _common(count: int) -> dict[str, str]:
    """Make what launchers say to all of their processes, for this package, for models and for libraries."""
    with socket.socket() as probe:  # for a process group that a model may want: nothing of this package listens there
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]
    place = {
        "WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count), "MASTER_ADDR": HOST, "MASTER_PORT": str(port)
    }  # fmt: skip
    if "OMP_NUM_THREADS" not in os.environ:  # each would take all cores
        place["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // count))
    if sys.path[:1] not in ([""], [os.getcwd()]):  # `-m` would put the working folder before everything else
        place["PYTHONSAFEPATH"] = "1"
    return place


def _wait(children: Sequence[subprocess.Popen[bytes]]) -> int:
    failed: int | None = None
    deadline = float("inf")
    while None in (codes := [child.poll() for child in children]):
        if failed is None:
            failed = next((rank for rank, code in enumerate(codes) if code), None)
            if failed is not None:
                deadline = time.monotonic() + PATIENCE_S
                _end_others(children, failed)
        if time.monotonic() > deadline:
            break
        time.sleep(POLL_S)
    code = children[failed or 0].returncode
    return 128 - code if code < 0 else code


def _end_others(children: Sequence[subprocess.Popen[bytes]], failed: int) -> None:
    code = children[failed].returncode
    if failed > 0 or code < 0:
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        complain(
            f"error: process {failed} of {len(children)} {how}: the others are told to end; what was finished is kept: "
            "start the same command again"
        )
    for child in children:
        if child.poll() is None:
            child.terminate()


@contextmanager
def forwarding(children: Sequence[subprocess.Popen[bytes]]) -> Iterator[None]:
    """Hand signals on to all processes; one that is ignored here (``nohup``) stays so in them.

    Outside the main thread, which alone may handle signals, it does nothing.
    """

    def forward(number: int, _frame: FrameType | None) -> None:
        for child in children:
            if child.poll() is None:
                child.send_signal(number)

    previous = {
        number: signal.signal(number, forward)
        for number in FORWARDED
        if threading.current_thread() is threading.main_thread() and signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
