"""Nothing that a model writes may hold up scoring. The table of the measured times: ``python -m tests...stalls``."""

from __future__ import annotations

import pytest

from lmms_eval.tasks.megabench.metrics import METRICS
from tests.cases import for_each
from tests.tasks.megabench.fuzzing import IS_THOROUGH
from tests.tasks.megabench.stalls import (
    SANDBOXED,
    TEXTS,
    VALUES,
    Case,
    context_cases,
    metric_cases,
    parser_cases,
)

LIMIT_S = 10.0
"""Far above the second that a free machine needs at most."""
FAST = [name for name, spec in METRICS.items() if name not in SANDBOXED and spec.needs is None]
SOME = ("unclosed fence", "digits", "words", "powers in LaTeX", "balanced brackets, shallow", "quoted words")
"""Without ``--fuzz``; each module's own tests have more."""
CHOSEN = {text: content for text, content in TEXTS.items() if IS_THOROUGH or text in SOME}


def check(case: Case) -> None:
    seconds = case.seconds()
    assert seconds < LIMIT_S, f"{case.target} on {case.text}: {seconds:.1f} s"


@for_each("text", CHOSEN)
def test_parsers(text: str) -> None:
    for case in parser_cases(text):
        check(case)


@pytest.mark.parametrize("name", FAST)
def test_metrics(name: str) -> None:
    for case in metric_cases(name, {**CHOSEN, **VALUES}):
        check(case)


@for_each("case", list(context_cases()), ids=lambda case: f"{case.target}: {case.text}")
def test_contexts(case: Case) -> None:
    check(case)
