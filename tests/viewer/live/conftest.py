"""Views as processes of their own, over runs against a slow server."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests.servers.stub import ROOT

_QUIET = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "SSH_CONNECTION": ""}


def command(*words: str) -> subprocess.Popen[str]:
    """Start ``lmms-eval WORDS``."""
    return subprocess.Popen(
        [sys.executable, "-m", "lmms_eval", *words],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **_QUIET},
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class View:
    """A view that answers."""

    process: subprocess.Popen[str]
    address: str
    """With its token."""
    hint: str
    """Printed where no browser is opened."""

    @property
    def root(self) -> str:
        return f"http://{urlsplit(self.address).netloc}/"

    @property
    def port(self) -> int:
        found = urlsplit(self.address).port
        assert found
        return found

    def end(self, by: int = signal.SIGINT) -> int:
        self.process.send_signal(by)
        self.process.communicate(timeout=30)
        return self.process.returncode


@contextmanager
def view_of(folder: Path, *words: str) -> Iterator[View]:
    process = command("view", str(folder), *words)
    try:
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], 60)[0], "the view did not start within a minute"
        lines = [process.stdout.readline() for _ in range(3)]
        assert lines[0].startswith("view: http://127.0.0.1:"), process.communicate()
        yield View(process, lines[0].split()[1], lines[1])
    finally:
        process.kill()
        process.communicate()


@contextmanager
def run_against(url: str, task: Path, out: Path, *words: str, model: str = "stub") -> Iterator[subprocess.Popen[str]]:
    """A run of the task in a folder, four requests at a time."""
    model_args = f"model={model},base_url={url},num_concurrent=4,api_key=none,max_retries=0"
    process = command(
        *("--model", "openai", "--model_args", model_args, "--tasks", "quiz", "--include_path", str(task)),
        *("--output_path", str(out), "--log_samples", "--error_budget", "1", *words),
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
