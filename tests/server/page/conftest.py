"""Servers with their page, as processes of their own, and a headless Chromium that looks at it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.servers.stub import ROOT
from tests.viewer.conftest import write_task

SLOW = """
import time


def doc_to_text(doc):
    time.sleep(0.25)
    return doc["question"]
"""


@dataclass(frozen=True, slots=True)
class Page:
    """A server that answers."""

    process: subprocess.Popen[str]
    address: str
    """With its token."""

    @property
    def root(self) -> str:
        return f"http://{urlsplit(self.address).netloc}/"

    @property
    def token(self) -> str:
        return urlsplit(self.address).query

    def client(self) -> httpx.Client:
        """A client that bears the token."""
        return httpx.Client(base_url=self.root, headers={"authorization": f"Bearer {self.token}"}, timeout=30)

    def jobs(self) -> list[dict[str, Any]]:
        with self.client() as client:
            found: list[dict[str, Any]] = client.get("ui/jobs").raise_for_status().json()["jobs"]
            return found

    def end(self) -> int:
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=60)
        return self.process.returncode


@contextmanager
def page_of(folder: Path, *words: str) -> Iterator[Page]:
    quiet = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "SSH_CONNECTION": ""}
    process = subprocess.Popen(
        [sys.executable, "-m", "lmms_eval", "ui", "--folder", str(folder), *words],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **quiet},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], 60)[0], "the page did not start within a minute"
        line = process.stdout.readline()
        assert line.startswith("page: http://127.0.0.1:"), process.communicate()
        yield Page(process, line.split()[1])
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
        process.communicate()


@pytest.fixture(scope="session")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A quick task, a slow one of ten seconds, and one whose name is markup."""
    folder = tmp_path_factory.mktemp("ui-tasks")
    rows = [{"question": f"{number} and 1?", "answer": str(number + 1), "media": []} for number in range(40)]
    write_task(folder / "quick", rows)
    write_task(folder / "slow", rows, "slow_quiz")
    with open(folder / "slow" / "utils.py", "a") as file:
        file.write(SLOW)
    text = (folder / "slow" / "slow_quiz.yaml").read_text()
    (folder / "slow" / "slow_quiz.yaml").write_text(
        text.replace("doc_to_text: question", "doc_to_text: !function utils.doc_to_text")
    )
    hostile = (folder / "quick" / "quiz.yaml").read_text().replace("task: quiz", 'task: "<img src=x onerror=alert(1)>"')
    (folder / "quick" / "hostile.yaml").write_text(hostile)
    return folder


@pytest.fixture(scope="module")
def page(tasks: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with page_of(tmp_path_factory.mktemp("ui-server"), "--include_path", str(tasks)) as found:
        yield found


@dataclass(slots=True)
class Tabs:
    """Tabs of one browser, and everything that they did that they should not."""

    context: Any
    root: str
    faults: list[str] = field(default_factory=list)

    def open(self, address: str) -> Any:
        tab = self.context.new_page()
        tab.set_default_timeout(15_000)
        tab.on("console", lambda message: self.faults.append(f"console {message.type}: {message.text}"))
        tab.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        tab.on("request", lambda request: self._requested(request))
        tab.on("dialog", lambda dialog: (self.faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        tab.goto(address)
        return tab

    def _requested(self, request: Any) -> None:
        if not request.url.startswith((self.root, "blob:", "data:")):
            self.faults.append(f"request: {request.url}")


@pytest.fixture
def tabs(chromium: Any, page: Page) -> Iterator[Tabs]:
    """A browser without faults at the end of the test."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    found = Tabs(context, page.root)
    yield found
    context.close()
    assert found.faults == []
