import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.tasks.megabench.metrics import METRICS
from lmms_eval.tasks.megabench.metrics.values import Scored
from tests.tasks.megabench.fuzzing import FUZZ, reply_text, reply_value

SLOW = {
    "latex_expr_equality",
    "text_with_latex_expr_equality",
    "general_single_numerical_match",
    "boxed_single_numerical_match",
    "gleu_cn",
    "bleu",
}
QUICK = sorted(name for name, spec in METRICS.items() if spec.path and not spec.needs_context and name not in SLOW)


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
        "import lmms_eval.tasks.megabench.scoring\n"
        "from lmms_eval.tasks.megabench.metrics import METRICS\n"
        "[spec.load() for spec in METRICS.values() if spec.path]\n"
        "heavy = {'sympy', 'numpy', 'jieba', 'sacrebleu', 'rapidfuzz', 'unidecode', 'antlr4', 'torch', 'datasets'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("name", QUICK)
@FUZZ
@given(response=reply_value, truth=reply_text)
def test_scores_are_in_range(name: str, response: Any, truth: str) -> None:
    try:
        value = METRICS[name].load()(response, truth)
    except Exception:  # noqa: BLE001 - scored 0 with the error recorded, see test_scoring.py
        return
    assert not isinstance(value, Scored)
    assert isinstance(value, float)
    assert value != value or value == -1 or 0 <= value <= 1
