"""Measure the judging of programs in the sandbox: 130 programs with 3 test cases each, as in MEGA-Bench.

    python -m benchmarks.sandbox      # about 10 s; one JSON object on standard output

The same is measured with a new sandbox child for every test case, and with a bare ``python -I -S`` without any layer.
Bars: 60 ms a test case, and 10 s for all.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from lmms_eval.sandbox import launcher
from lmms_eval.sandbox.layers import probe_layers
from lmms_eval.sandbox.policy import Policy
from lmms_eval.tasks.megabench.metrics.code import program_judge

PROGRAMS, FRESH = 130, 20
BAR_MS, BAR_S = 60.0, 10.0
SOURCE = """
def solve(values):
    best = 0
    for start in range(len(values)):
        for end in range(start, len(values)):
            best = max(best, sum(values[start:end + 1]))
    return best

if __name__ == "__main__":
    count = int(input())
    print(solve([int(word) for word in input().split()][:count]))
"""
CASES = {
    "test_case": [
        {"input": ["3", "1 -2 3"], "expected": "3"},
        {"input": ["5", "2 2 -9 4 4"], "expected": "8"},
        {"input": ["1", "-5"], "expected": "0"},
    ]
}


def seconds(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def judge(number: int) -> float:
    return program_judge(f"{SOURCE}# {number}", CASES)


def judge_afresh() -> None:
    for number in range(FRESH):
        program_judge(f"{SOURCE}# {number}", {"test_case": CASES["test_case"][:1]})
        launcher.close()


def bare() -> None:
    for _ in range(FRESH):
        subprocess.run(
            [sys.executable, "-I", "-S", "-c", SOURCE], input=b"1\n1\n", stdout=subprocess.DEVNULL, check=True
        )


def main() -> None:
    Policy().layers()
    probing = seconds(probe_layers.__wrapped__)
    scores: list[float] = []
    serial = seconds(lambda: scores.extend(judge(number) for number in range(PROGRAMS)))
    workers = len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(workers) as pool:
        threaded = seconds(lambda: scores.extend(pool.map(judge, range(PROGRAMS))))
    assert set(scores) == {1.0}, "the program passes its test cases"
    cases = PROGRAMS * len(CASES["test_case"])
    per_case = 1000 * serial / cases
    report = {
        "layers": [layer.name for layer in probe_layers() if layer.active],
        "test_cases": cases,
        "ms_per_test_case": per_case,
        "ms_with_a_child_for_each": 1000 * seconds(judge_afresh) / FRESH,
        "ms_of_a_bare_interpreter": 1000 * seconds(bare) / FRESH,
        "seconds": serial,
        "threads": workers,
        "seconds_in_threads": threaded,
        "seconds_of_the_probe": probing,
        "bars_met": per_case <= BAR_MS and serial <= BAR_S,
        "load": os.getloadavg()[0],
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
