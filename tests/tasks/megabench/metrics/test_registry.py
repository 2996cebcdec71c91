import json
import math
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.api.judging import Verdict
from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import LmmsEvalError
from lmms_eval.tasks.megabench.metrics import METRICS, SANDBOX
from lmms_eval.tasks.megabench.metrics.values import DetailedScore
from tests.tasks.megabench.fuzzing import FUZZ, cpu_limit, reply_text, reply_value

FUNCTIONS = {name: spec.load() for name, spec in METRICS.items() if not spec.judged and spec.needs != SANDBOX} | {
    f"{name}, fixed": spec.load_fixed() for name, spec in METRICS.items() if spec.fixed and spec.needs != SANDBOX
}
"""All but those whose judge or sandbox has tests of its own."""
DECLARED = (LmmsEvalError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError, NotEvaluated)
"""What a metric may raise: scored 0 with the error recorded (scoring rules §1), see test_scoring.py."""
JUDGED = sorted(name for name, spec in METRICS.items() if spec.judged)


def test_all_names_are_there_and_either_work_or_say_what_they_need() -> None:
    assert len(METRICS) == 50
    for name, spec in METRICS.items():
        assert name == spec.name == name.lower()
        if spec.path:
            assert callable(spec.load())
        else:
            with pytest.raises(NotEvaluated, match=str(spec.needs)):
                spec.load()


def test_unsupported_is_minus_one_and_entailment_zero() -> None:
    assert METRICS["unsupported"].load()("x", "x") == -1
    assert METRICS["nli_entailment"].load()("x", "x") == 0


def test_importing_loads_no_heavy_package() -> None:
    program = (
        "import sys\n"
        "import lmms_eval.tasks.megabench.scoring.query\n"
        "from lmms_eval.tasks.megabench.metrics import METRICS\n"
        "[spec.load() for spec in METRICS.values() if spec.path]\n"
        "heavy = {'sympy', 'numpy', 'jieba', 'sacrebleu', 'rapidfuzz', 'text_unidecode', 'antlr4', 'torch'}\n"
        "heavy |= {'datasets'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


_FACTS = ["length", "contain", "contain_only##times", "contain##position", "acrostic", "syllables", "rhyming_scheme",
          "poetry_meter", "domain_pddl", "task_pddl", "bounding_boxes"]  # fmt: skip
_PLANNING = st.lists(
    st.sampled_from(["(:action a", "(:init", "(:goal", "(and", "(not", ":precondition", ":effect", ":parameters",
                     "(b ?x)", "(c)", "(", ")", " ", "?x", "\n"]), max_size=30,
).map("".join)  # fmt: skip
contexts = st.one_of(
    st.dictionaries(st.sampled_from(_FACTS), reply_value, max_size=3),
    st.fixed_dictionaries({"domain_pddl": _PLANNING, "task_pddl": _PLANNING}),
    st.fixed_dictionaries({"bounding_boxes": st.lists(st.one_of(reply_text, st.just("(0, 0, 1, 1)")), max_size=3)}),
    st.dictionaries(st.sampled_from(_FACTS[:8]), st.text("<>=0123456789 ab[],#", max_size=8), max_size=3),
)


def check(name: str, response: Any, target: Any) -> None:
    spec = METRICS[name.removesuffix(", fixed")]
    with cpu_limit(2.0):
        try:
            value = FUNCTIONS[name](response, target)
        except DECLARED:
            return
    score = value.score if isinstance(value, DetailedScore) else value
    assert isinstance(value, DetailedScore) == spec.gives_info
    assert isinstance(score, int | float)
    assert math.isnan(score) or score == -1 or 0 <= score <= 1 + 1e-9
    if isinstance(value, DetailedScore):
        json.dumps(value.info)


@FUZZ
@given(response=reply_value, target=reply_value, context=contexts)
def test_any_response_scores_within_range_or_raises_what_is_declared(response: Any, target: Any, context: Any) -> None:
    for name in FUNCTIONS:
        try:
            check(name, response, context if METRICS[name.removesuffix(", fixed")].needs_context else target)
        except BaseException as error:
            error.add_note(f"metric {name}")
            raise


@pytest.mark.parametrize("name", JUDGED)
@FUZZ
@given(response=reply_value, truth=reply_value, reply=st.one_of(st.none(), reply_text, st.just("**Score**: 7")))
def test_any_verdict_is_read(name: str, response: Any, truth: Any, reply: str | None) -> None:
    verdict = Verdict("a", reply, accepted=True, model="scripted")
    try:
        value = METRICS[name].load()(response, truth, verdict)
    except DECLARED:
        return
    assert (value.score if isinstance(value, DetailedScore) else value) >= 0
