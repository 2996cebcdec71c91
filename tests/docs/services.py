"""Commands that go on until they are stopped: started, waited for, interrupted."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

PATIENCE_S = 120.0
_PORT = re.compile(r"--port \d+")


def commands_of(text: str) -> Iterator[str]:
    """Return the commands of a block, each in one line; ports are any that are free."""
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield _PORT.sub("--port 0", line)


def stopped_after(text: str, command: str, folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Start a command, wait until it prints the text, and send Ctrl-C; its exit code and what it has printed.

    Raises:
        AssertionError: it ended, or went on without the text.
    """
    with subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            printed = _read_until(text.encode(), process)
            os.killpg(process.pid, signal.SIGINT)
            rest, _ = process.communicate(timeout=PATIENCE_S)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, (printed + rest).decode(errors="replace")


def _read_until(text: bytes, process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    printed = b""
    deadline = time.monotonic() + PATIENCE_S
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while text not in printed:
            assert selector.select(deadline - time.monotonic()), f"{text!r} was not printed, but:\n{printed.decode()}"
            read = os.read(process.stdout.fileno(), 65536)
            assert read, f"it ended without printing {text!r}:\n{printed.decode()}"
            printed += read
    return printed
