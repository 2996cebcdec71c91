"""``--processes``: several processes of one command on this machine, without a launcher."""

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
"""Seconds that the other processes have to end after one has failed; then they are killed."""


def run_processes(arguments: Sequence[str], count: int) -> int:
    """Start ``count`` processes of a command line as ranks 0 to ``count - 1`` and wait for them.

    All processes write to this process's standard streams; rank 0 prints the results. Signals are forwarded to all. If
    a process fails before rank 0 has ended, the others receive SIGTERM.

    Returns:
        The exit code of rank 0, or of the process that failed before it (128 + n: killed by signal n).
    """
    children: list[subprocess.Popen[bytes]] = []
    with StoreServer() as store, forwarding(children):
        with socket.socket() as probe:  # a free port for process groups that a model may create
            probe.bind((HOST, 0))
            port = probe.getsockname()[1]
        environment = {
            **os.environ, **store.environment, "WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count),
            "MASTER_ADDR": HOST, "MASTER_PORT": str(port),
        }  # fmt: skip
        # Otherwise each process would use all cores.
        environment.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // count)))
        if sys.path[:1] not in ([""], [os.getcwd()]):  # `-m` would put the working folder first
            environment["PYTHONSAFEPATH"] = "1"
        try:
            for rank in range(count):
                child = subprocess.Popen(
                    [sys.executable, "-m", "lmms_eval", *arguments],
                    env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                    stdin=None if rank == 0 else subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl-C reaches only this process, which forwards it once
                )
                children.append(child)
            return _wait(children)
        finally:
            for child in children:
                if child.poll() is None:
                    child.kill()
                    child.wait()


def _wait(children: Sequence[subprocess.Popen[bytes]]) -> int:
    """Wait until all have ended. If one fails, the others are stopped. Returns the exit code of the command."""
    failed: int | None = None
    deadline = float("inf")
    while None in (codes := [child.poll() for child in children]) and time.monotonic() <= deadline:
        if failed is None and (failed := next((rank for rank, code in enumerate(codes) if code), None)) is not None:
            deadline = time.monotonic() + PATIENCE_S
            code = children[failed].returncode
            if failed > 0 or code < 0:
                how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
                complain(
                    f"error: process {failed} of {len(children)} {how}: the others are stopped; what was finished is "
                    "kept: start the same command again"
                )
            for child in children:
                if child.poll() is None:
                    child.terminate()
        time.sleep(POLL_S)
    code = children[failed or 0].returncode
    return 128 - code if code < 0 else code


@contextmanager
def forwarding(children: Sequence[subprocess.Popen[bytes]]) -> Iterator[None]:
    """Forward signals to all processes. A signal that is ignored here (``nohup``) stays ignored in them.

    Outside of the main thread this does nothing, since only the main thread may handle signals.
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
