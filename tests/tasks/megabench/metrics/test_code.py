from __future__ import annotations

import sys
from typing import Any

import pytest

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.sandbox.launcher import SandboxError
from lmms_eval.sandbox.policy import Policy, not_confined, using
from lmms_eval.tasks.megabench.conversions.literals import ConversionError
from lmms_eval.tasks.megabench.metrics import code
from lmms_eval.tasks.megabench.metrics.code import program_judge, program_judge_fixed, read_test_cases
from lmms_eval.tasks.megabench.scoring.query import score_query
from lmms_eval.tasks.megabench.scoring.task_spec import parse_task_spec
from tests.cases import for_each
from tests.sandbox.kit import only

needs_sandbox = pytest.mark.skipif(
    bool(sys.platform != "linux" or not_confined(Policy().probe())), reason="nothing here confines programs"
)


def cases(*pairs: tuple[Any, Any]) -> dict[str, Any]:
    return {"test_case": [{"input": lines, "expected": expected} for lines, expected in pairs]}


SUMS = cases((["3 4"], "7"), (["10 -2"], "8\n"), (["1 1"], "3"))


@needs_sandbox
@pytest.mark.parametrize(
    ("source", "context", "official", "fixed"),
    [
        ("print(sum(map(int, input().split())))", SUMS, 2 / 3, 2 / 3),
        ("def f(s): return sum(map(int, s.split()))\ndef g(): return f(input())\nprint(g())", SUMS, 0, 2 / 3),
        ("import sys\nprint(sum(map(int, sys.stdin.read().split())))", SUMS, 0, 2 / 3),
        ("print(sum(map(int, input().split()))); exit(0)", SUMS, 0, 2 / 3),
        ("import sys\nprint(sum(map(int, input().split()))); sys.exit(1)", SUMS, 0, 0),
        ("def m():\n    print(input())\nif __name__ == '__main__':\n    m()", cases((["x"], "x")), 0, 1),
        (
            'def a(): return input()\ndef m(): print(a())\nif __name__ == "__main__":\n    m()',
            cases((["x"], "x")),
            1,
            1,
        ),
        ("print('x' * 100_000)", cases(([], "x" * 100_000)), 0, 1),
        ("print('x' * 60_000)", cases(([], "x" * 60_000)), 1, 1),
        ("print('x' * (1 << 20))", cases(([], "x" * (1 << 20))), 0, 0),
        ("while True:\n    try: input()\n    except EOFError: break\nprint(1)", cases((["a", "b"], "1")), 0, 1),
        ("print(input(), input())", cases((["a", "b"], "a b")), 1, 1),
        ("print(repr(input()))", cases(([], "''")), 1, 1),
        ("print(1)", cases(([], "1 \n\n")), 1, 1),
        ("print(' 1')", cases(([], "1")), 0, 0),
        ("", cases(([], "1")), 0, 0),
    ],
)
def test_official_and_fixed(source: str, context: dict[str, Any], official: float, fixed: float) -> None:
    assert program_judge(source, context) == pytest.approx(official)
    assert program_judge_fixed(source, context) == pytest.approx(fixed)


@needs_sandbox
def test_numpy_is_there_as_for_the_official_judge() -> None:
    pytest.importorskip("numpy")
    assert program_judge("import numpy as np\nprint(np.eye(2).sum())", cases(([], "2.0"))) == 1


@needs_sandbox
def test_the_harness_cannot_be_read_by_a_program() -> None:
    """What is expected is not in the program's reach: neither in files nor in the memory of its process."""
    source = "import gc\nprint(any('detcepxe-yrev'[::-1] in str(o) for o in gc.get_objects() if isinstance(o, dict)))"
    assert program_judge(source, cases(([], "very-expected"), ([], "False"))) == 0.5
    assert program_judge_fixed(f"print(open({code.__file__!r}).read())", cases(([], "x"))) == 0


def test_what_is_no_program_or_has_no_cases() -> None:
    assert program_judge(None, SUMS) == program_judge({"a": 1}, SUMS) == 0
    assert program_judge("print(1)", {"test_case": []}) == 0


@for_each(
    "context",
    [
        {},
        {"test_case": None},
        {"test_case": "x"},
        {"test_case": [1]},
        cases((["1"], 1)),
        cases((["1"], None)),
        cases(([1], "1")),
        cases((None, "1")),
    ],
)
def test_malformed_test_cases(context: dict[str, Any]) -> None:
    with pytest.raises(ConversionError):
        program_judge("print(1)", context)


def test_input_lines_are_joined() -> None:
    assert [text for text, _ in read_test_cases(cases((["a", "b"], ""), ("xy", ""), ([], "")))] == [
        "a\nb",
        "x\ny",
        "",
    ]
    assert read_test_cases({"test_case": {"input": ["a"], "expected": "b \n"}})[0][1] == "b"


def test_refusal_is_not_evaluated_with_the_remedy() -> None:
    info = {
        "field_score_function": {"answer": "program_judge"},
        "aggregation": {"function": "mean", "field_weights": {"answer": 1}},
        "response_parse_function": "answer_string",
    }
    spec = parse_task_spec(info, "vector", ["answer"])
    with using(Policy(probe=lambda: only(("seccomp",)))):
        with pytest.raises(NotEvaluated, match="--allow_unsafe_code"):
            program_judge("print(1)", SUMS)
        score = score_query("print(7)", {"answer": ""}, spec, SUMS)
    assert score.query is None
    assert score.fields == {}
    note = score.as_dict()["info"]["answer"]
    assert note.startswith("not evaluated: programs are not run: nothing confines their files")
    assert "--allow_unsafe_code" in note


def test_a_broken_sandbox_is_not_a_wrong_program(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def broken(*_arguments: object) -> None:
        calls.append("run")
        raise SandboxError("the sandbox process has ended")

    monkeypatch.setattr(code, "run", broken)
    with pytest.raises(NotEvaluated, match="has ended"):
        program_judge("print(1)", SUMS)
    assert len(calls) == 2


def test_the_time_for_a_program_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "PROGRAM_S", -1.0)
    monkeypatch.setattr(code, "run", None)
    assert program_judge("print(7)", SUMS) == 0
