"""Judges programs of the model by test cases in the sandbox (specification §9.8)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.sandbox.launcher import Limits, Outcome, Program, SandboxError, SandboxRefused, run
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


class TestCase(Struct, frozen=True):
    """Input lines joined by newlines, and the expected output, stripped at its end."""

    __test__ = False

    text: str
    expected: str


def program_judge(response: Any, context: Mapping[str, Any]) -> float:
    """Share of the test cases that the program passes; as the official judge runs programs.

    ``input()`` gives the lines, standard input is empty, what is printed counts if the program comes to its end within
    64 KiB. Without a main guard in double quotes functions do not see top-level names.

    Raises:
        NotEvaluated: programs are not run here.
        ConversionError: the test cases are malformed.
    """
    limits = Limits(cpu_s=CPU_S, wall_s=WALL_S, output_bytes=OFFICIAL_OUTPUT)

    def passes(source: str, case: TestCase) -> bool:
        one_namespace = _MAIN_GUARD in source
        program = Program(source, case.text, "captured", one_namespace=one_namespace, packages=PACKAGES)
        return _passed(_run(program, limits), case)

    return _share(response, context, passes)


def program_judge_fixed(response: Any, context: Mapping[str, Any]) -> float:
    """``program_judge`` without the official judge's faults: an ordinary script with ordinary standard input.

    One ``__main__`` namespace, ``exit(0)`` is a good end, 1 MiB of output.
    """
    limits = Limits(cpu_s=CPU_S, wall_s=WALL_S, output_bytes=FIXED_OUTPUT)

    def passes(source: str, case: TestCase) -> bool:
        program = Program(source, case.text + "\n", packages=PACKAGES)
        return _passed(_run(program, limits), case)

    return _share(response, context, passes)


def read_test_cases(context: Mapping[str, Any]) -> list[TestCase]:
    """The test cases of an evaluation context. Raises ``ConversionError``."""
    found = context.get("test_case")
    entries = [found] if isinstance(found, Mapping) else found
    if not isinstance(entries, list | tuple):
        raise ConversionError("the evaluation context has no test cases")
    return [_test_case(entry) for entry in entries]


def _test_case(entry: Any) -> TestCase:
    lines, expected = (entry.get("input"), entry.get("expected")) if isinstance(entry, Mapping) else (None, None)
    if not isinstance(expected, str):
        raise ConversionError("the expected output of a test case must be a text")
    if not isinstance(lines, str | list | tuple) or not all(isinstance(line, str) for line in lines):
        raise ConversionError("the input of a test case must be a list of texts")
    return TestCase("\n".join(lines), expected.rstrip())


def _share(response: Any, context: Mapping[str, Any], passes: Callable[[str, TestCase], bool]) -> float:
    cases = read_test_cases(context)
    if not cases or not isinstance(response, str):
        return 0.0
    deadline = time.monotonic() + PROGRAM_S
    passed = sum(time.monotonic() < deadline and passes(response, case) for case in cases)
    return passed / len(cases)


def _passed(outcome: Outcome, case: TestCase) -> bool:
    return outcome.reason == "ok" and outcome.stdout.decode("utf-8", "replace").rstrip() == case.expected


def _run(program: Program, limits: Limits) -> Outcome:
    try:
        try:
            return run(program, limits)
        except SandboxError:  # the child may have been killed from outside; another one may succeed
            return run(program, limits)
    except (SandboxRefused, SandboxError) as error:
        raise NotEvaluated(str(error)) from error
