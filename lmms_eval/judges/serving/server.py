"""The server of a judge: starting it, waiting until it is ready, and ending it."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import IO

from loguru import logger

from lmms_eval.errors import ModelError
from lmms_eval.judges.serving.arguments import Serving, check_program
from lmms_eval.judges.serving.program import KEY
from lmms_eval.processes import module_command
from lmms_eval.utils.launch import LAUNCHER_VARIABLES, VISIBLE
from lmms_eval.utils.redaction import note_secrets

LOG = "judge-server.log"
KEEPER_LOOK_S = 0.5
LOOK_S = 0.25
ENDING_S = 10.0
MOST_LOG_BYTES = 256 * 2**20
"""Output of a server beyond this size is discarded."""
TAIL_BYTES = 4000
"""The part of the log that an error shows."""
_ROOT = str(Path(__file__).parents[3])


def main(arguments: list[str]) -> int:
    """Keep a server until the parent ends or closes standard input.

    ``arguments``: the parent's process id, the log file, and the arguments of ``program``.
    """
    parent, log, *command = arguments
    key = os.environ.get(KEY, "").encode()
    server = subprocess.Popen(
        [*module_command("lmms_eval.judges.serving.program"), *command],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    # Set after the start, or the server would ignore them too. ``_end_group`` also sends signals to this process.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert server.stdout is not None
    copying = threading.Thread(target=_copy, args=(server.stdout, log, key), daemon=True)
    copying.start()
    wanted = threading.Event()

    def watch_input() -> None:
        while os.read(0, 4096):
            pass
        wanted.set()

    threading.Thread(target=watch_input, daemon=True).start()
    while server.poll() is None and not wanted.is_set() and os.getppid() == int(parent):
        wanted.wait(KEEPER_LOOK_S)
    code = server.poll()
    _end_group(server)
    copying.join(1.0)
    return 0 if code is None else code if code >= 0 else 128 - code


def _copy(output: IO[bytes], log: str, key: bytes) -> None:
    """Write the server's output to the file, line by line."""
    written = 0
    with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab", buffering=0) as file:
        while line := output.readline(1 << 16):
            line = line.replace(key, b"[REDACTED]") if key else line
            written += len(line)
            if written <= MOST_LOG_BYTES:
                with contextlib.suppress(OSError):  # a full disk must not stop the server
                    file.write(line)


def _end_group(server: subprocess.Popen[bytes]) -> None:
    """Ask all processes of the group to end, and kill the server if it does not."""
    os.killpg(0, signal.SIGTERM)
    end = time.monotonic() + ENDING_S
    while server.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    if server.poll() is None:
        server.kill()
        server.wait()


class JudgeServer:
    """A judge's server as a context: entering starts it and waits until it is ready; leaving ends it.

    Args:
        serving: the settings of the server.
        folder: the folder of the run, for the log.

    Raises:
        ModelError: on entering: the program is not installed, ends at its start, or is not ready in time.
    """

    def __init__(self, serving: Serving, folder: Path) -> None:
        self._serving, self.log = serving, folder / LOG
        self.key = serving.api_key or secrets.token_hex(24)
        self.port = serving.port
        self._process: subprocess.Popen[str] | None = None
        self._is_ready = False

    @property
    def url(self) -> str:
        """The address up to ``/v1``."""
        host = self._serving.host
        shown = "127.0.0.1" if host == "0.0.0.0" else f"[{host}]" if ":" in host else host
        return f"http://{shown}:{self.port}/v1"

    def __enter__(self) -> JudgeServer:
        check_program(self._serving)
        note_secrets([self.key])
        self.port = self.port or _free_port(self._serving.host)
        serving = self._serving
        logger.info("starting {} with the judge {} at {}; log: {}", serving.name, serving.model, self.url, self.log)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.unlink(missing_ok=True)  # of an earlier start
        # The environment of this process without the variables of a distributed launch.
        environment = {name: value for name, value in os.environ.items() if name not in LAUNCHER_VARIABLES}
        environment["PYTHONPATH"] = os.pathsep.join([_ROOT, *filter(None, [environment.get("PYTHONPATH")])])
        environment |= {KEY: self.key} if serving.gpus is None else {KEY: self.key, VISIBLE: serving.gpus}
        self._process = subprocess.Popen(
            [
                *module_command("lmms_eval.judges.serving.server"), str(os.getpid()), str(self.log),
                serving.program.key, serving.program.module, *serving.command(self.port),
            ],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env=environment, start_new_session=True,
        )  # fmt: skip
        try:
            self._wait()
        except BaseException:  # re-raised, also a KeyboardInterrupt: the server's process must not stay
            self._end()
            raise
        self._is_ready = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.poll() is not None:
            logger.warning("the judge's server ended before the run did; its log: {}", self.log)
        self._end()

    def _wait(self) -> None:
        assert self._process is not None
        begin = time.monotonic()
        while not self._answers():
            if self._process.poll() is not None:
                code = (self._process.communicate()[1] or "").strip()
                raise ModelError(self._failure(f"ended at its start{f' (code {code})' if code.isdigit() else ''}"))
            if time.monotonic() - begin > self._serving.timeout_s:
                raise ModelError(
                    self._failure(
                        f"takes no requests after {self._serving.timeout_s:g} s (timeout=... raises the limit)"
                    )
                )
            time.sleep(LOOK_S)
        logger.info("the judge's server takes requests after {:.0f} s", time.monotonic() - begin)

    def _answers(self) -> bool:
        address = f"{self.url.removesuffix('/v1')}{self._serving.program.ready}"
        request = urllib.request.Request(address, headers={"Authorization": f"Bearer {self.key}"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=5) as answer:
                return bool(answer.status == 200)
        except (
            OSError,
            ValueError,
        ):  # not started yet, or still loading: URLError and HTTPError are subclasses of OSError
            return False

    def _failure(self, what: str) -> str:
        tail = self.log.read_bytes()[-TAIL_BYTES:].decode("utf-8", "replace").strip() if self.log.exists() else ""
        serving = self._serving
        ending = f"\nThe end of its log ({self.log}):\n{tail}" if tail else f"; its log is {self.log}"
        return f"--launcher_args: {serving.name} with {serving.model} {what}{ending}"

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None  # both were requested
        assert process.stderr is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(ENDING_S + 5.0)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            process.wait()
        process.stderr.close()


def _free_port(host: str) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        try:
            probe.bind((host, 0))
        except OSError as error:
            raise ModelError(f"--launcher_args: host={host} is not an address of this machine: {error}") from error
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    ended = main(sys.argv[1:])
    if ended:
        sys.stderr.write(f"{ended}\n")
        sys.stderr.flush()
    os.killpg(0, signal.SIGKILL)
