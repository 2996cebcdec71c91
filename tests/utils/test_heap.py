from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import threading
from lmms_eval.utils.launch import share_heap


def peak_mb():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


is_shared = share_heap() and share_heap()
base = peak_mb()
turns, kept = [threading.Semaphore(1), threading.Semaphore(0)], []


def work(number):
    for _ in range(3):
        turns[number].acquire()
        blocks = [bytearray(b"x" * 100_000) for _ in range(600)]
        kept.append(bytearray(120_000))  # so that the C library cannot give everything back
        del blocks
        turns[1 - number].release()


threads = [threading.Thread(target=work, args=(number,)) for number in (0, 1)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(is_shared, peak_mb() - base)
"""


def run(**environment: str) -> list[str]:
    finished = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, env=environment, check=True)
    return finished.stdout.split()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the call is that of glibc on Linux")
def test_what_one_thread_has_freed_another_uses() -> None:
    """Two threads in turn allocate 60 MB and free them."""
    is_shared, peak_mb = run()
    assert is_shared == "True" and int(peak_mb) < 90
    is_shared, peak_mb = run(MALLOC_ARENA_MAX="8")
    assert is_shared == "False" and int(peak_mb) > 100, "the environment's word wins"
