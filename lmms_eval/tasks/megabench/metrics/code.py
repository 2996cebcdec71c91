"""Judges programs of the model by test cases in the sandbox (specification §9.8)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.sandbox.launcher import Limits, Outcome, Program, SandboxError, run
from lmms_eval.sandbox.policy import SandboxRefused
from lmms_eval.tasks.megabench.conversions.literals import ConversionError

CPU_S, WALL_S = 2, 10.0
OFFICIAL_OUTPUT = 64 << 10
"""Most output; more cannot be delivered to the official judge in time."""
FIXED_OUTPUT = 1 << 20
PROGRAM_S = 240.0
"""Limit for all test cases of a program; cases that did not run by then fail."""
PACKAGES = ("numpy",)
"""Packages of the official judge's environment in addition to the standard library."""
_MAIN_GUARD = 'if __name__ == "__main__":'


def program_judge(response: Any, context: Mapping[str, Any]) -> float:
    """Share of the test cases that the program passes; as the official judge runs programs.

    ``input()`` gives the lines, standard input is empty, what is printed counts if the program comes to its end within
    64 KiB. Without a main guard in double quotes functions do not see top-level names.

    Raises:
        NotEvaluated: programs are not run here.
        ConversionError: the test cases are malformed.
    """

    def program(source: str, text: str) -> Program:
        return Program(source, text, "captured", one_namespace=_MAIN_GUARD in source, packages=PACKAGES)

    return _share(response, context, program, OFFICIAL_OUTPUT)


def program_judge_fixed(response: Any, context: Mapping[str, Any]) -> float:
    """``program_judge`` without the official judge's faults: an ordinary script with ordinary standard input.

    One ``__main__`` namespace, ``exit(0)`` is a good end, 1 MiB of output.
    """
    return _share(response, context, lambda source, text: Program(source, f"{text}\n", packages=PACKAGES), FIXED_OUTPUT)


def read_test_cases(context: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Read the test cases of an evaluation context: the input, and the expected output, stripped at its end.

    Raises ``ConversionError``.
    """
    found = context.get("test_case")
    entries = [found] if isinstance(found, Mapping) else found
    if not isinstance(entries, list | tuple):
        raise ConversionError("the evaluation context has no test cases")
    cases = []
    for entry in entries:
        lines, expected = (entry.get("input"), entry.get("expected")) if isinstance(entry, Mapping) else (None, None)
        if not isinstance(expected, str):
            raise ConversionError("the expected output of a test case must be a text")
        if not isinstance(lines, str | list | tuple) or not all(isinstance(line, str) for line in lines):
            raise ConversionError("the input of a test case must be a list of texts")
        cases.append(("\n".join(lines), expected.rstrip()))
    return cases


def _share(
    response: Any, context: Mapping[str, Any], program: Callable[[str, str], Program], output_bytes: int
) -> float:
    cases = read_test_cases(context)
    if not cases or not isinstance(response, str):
        return 0.0
    limits = Limits(cpu_s=CPU_S, wall_s=WALL_S, output_bytes=output_bytes)
    deadline, passed = time.monotonic() + PROGRAM_S, 0
    for text, expected in cases:
        if time.monotonic() < deadline:
            outcome = _run(program(response, text), limits)
            passed += outcome.reason == "ok" and outcome.stdout.decode("utf-8", "replace").rstrip() == expected
    return passed / len(cases)


def _run(program: Program, limits: Limits) -> Outcome:
    try:
        try:
            return run(program, limits)
        except SandboxError:  # the child may have been killed from outside; another one may succeed
            return run(program, limits)
    except (SandboxRefused, SandboxError) as error:
        raise NotEvaluated(str(error)) from error
