"""The engine's processes end with the command, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lmms_eval.models.offline.model import ProcessKiller
from lmms_eval.processes import descendants

ROOT = Path(__file__).parents[3]
COMMAND = """
import subprocess, sys, time
from lmms_eval.models.offline.model import ProcessKiller
old = subprocess.Popen(["sleep", "30"])
started = subprocess.Popen(["sh", "-c", "sleep 60; true"])
time.sleep(0.2)
guard = ProcessKiller.of_new_processes([old.pid])
print("ready", flush=True)
time.sleep(60)
"""

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are found in /proc")


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_killed_command_takes_the_engines_processes_with_it() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, "-c", COMMAND], stdout=subprocess.PIPE, env=environment)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    named = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in descendants(process.pid)}
    engine = [pid for pid, line in named.items() if b"60" in line and b"read _" not in line]
    (other,) = (pid for pid, line in named.items() if line.endswith(b"\x0030\x00"))
    assert len(engine) == 2
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    deadline = time.monotonic() + 20
    while any(is_alive(pid) for pid in engine) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(is_alive(pid) for pid in engine) and is_alive(other), "only what the engine started"
    os.kill(other, signal.SIGKILL)


def test_a_closed_guard_leaves_them_alone() -> None:
    with subprocess.Popen(["sleep", "30"]) as process:
        guard = ProcessKiller([process.pid])
        guard.close()
        time.sleep(0.2)
        assert process.poll() is None
        process.kill()
