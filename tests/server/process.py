"""A real server in a process of its own, as a person starts it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parents[2]
ENDED = ("completed", "failed", "cancelled")
PATIENCE_S = 120.0


@dataclass
class ServerProcess:
    """``lmms-eval serve`` on a free port, with a client of it."""

    folder: Path
    words: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    before: Callable[[], None] | None = None
    """Called in the process before the server starts."""
    program: tuple[str, ...] = ("-m", "lmms_eval")
    process: subprocess.Popen[str] | None = None
    client: httpx.Client = field(default_factory=httpx.Client)

    def start(self) -> None:
        paths = [str(ROOT), self.variables.get("PYTHONPATH", ""), os.environ.get("PYTHONPATH", "")]
        environment = {
            **os.environ,
            "OPENAI_API_KEY": "stub",
            "HF_HUB_OFFLINE": "1",
            **self.variables,
            "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        }
        command = [sys.executable, *self.program, "serve", "--port", "0", "--folder", str(self.folder)]
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder.parent / f"{self.folder.name}.log", "a") as log:
            self.process = subprocess.Popen(
                [*command, *self.words],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment,
                preexec_fn=self.before,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.match(r"listening on (http://\S+),", line)
        assert found, (line, self.log)
        token = self.variables.get("LMMS_EVAL_SERVER_TOKEN")
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self.client = httpx.Client(base_url=found[1], timeout=30, trust_env=False, headers=headers)
        self._wait_until_it_answers()

    def _wait_until_it_answers(self) -> None:
        for _ in range(600):
            with contextlib.suppress(httpx.TransportError):
                if self.client.get("/health").status_code == 200:
                    return
            time.sleep(0.05)
        raise AssertionError(self.log)

    @property
    def log(self) -> str:
        return (self.folder.parent / f"{self.folder.name}.log").read_text()

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        assert self.process is not None
        self.client.close()
        self.process.send_signal(number)
        code = self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def submit(self, **body: Any) -> str:
        answer = self.client.post("/evaluate", json=body)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["job_id"])

    def job(self, job_id: str) -> dict[str, Any]:
        answer = self.client.get(f"/jobs/{job_id}")
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told

    def wait(self, job_id: str, *states: str, patience_s: float = PATIENCE_S) -> dict[str, Any]:
        """Wait until a job is in one of these states, or has ended."""
        deadline = time.monotonic() + patience_s
        while (told := self.job(job_id))["status"] not in (states or ENDED):
            assert time.monotonic() < deadline, (told, self.log)
            assert not states or told["status"] not in ENDED, told
            time.sleep(0.05)
        return told


@contextlib.contextmanager
def running_server(folder: Path, *words: str, **variables: str) -> Iterator[ServerProcess]:
    """A server while the block lasts; its jobs are ended with it."""
    server = ServerProcess(folder, words, variables)
    server.start()
    try:
        yield server
    finally:
        if server.process is not None and server.process.poll() is None:
            server.end()


def exits(folder: Path) -> list[dict[str, Any]]:
    """Notes about ends below a server's folder."""
    return [json.loads(path.read_text()) for path in folder.glob("jobs/*/exit.json")]
