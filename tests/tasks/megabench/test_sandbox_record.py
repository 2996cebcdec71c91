from __future__ import annotations

from typing import Any

from lmms_eval.api.task import Answer, TaskOptions
from lmms_eval.sandbox.policy import Policy, using
from lmms_eval.tasks.megabench import utils
from lmms_eval.tasks.megabench.utils import sandbox_record
from tests.sandbox.kit import only
from tests.tasks.kit import Function, loaded
from tests.tasks.megabench.rows_for_tests import document

STRICT = {"layers": ["landlock", "seccomp", "limits"], "allow_unsafe_code": False}
CODE = """
from lmms_eval.sandbox.policy import current_policy

def process_results(doc, results):
    return {"exact_match": float(current_policy().allow_unsafe)}
"""


def test_the_record_names_active_layers() -> None:
    with using(Policy(probe=lambda: only(("landlock", "seccomp")))):
        assert sandbox_record() == STRICT
    with using(Policy(True, lambda: only(()))):
        assert sandbox_record() == {"layers": ["limits"], "allow_unsafe_code": True}


def test_records_are_kept_once() -> None:
    other = {**STRICT, "layers": ["limits"]}
    value = processed("exact_str_match", ())["macro_mean"]
    values = [{**value, **more} for more in ({"sandbox": STRICT}, {}, {"sandbox": dict(STRICT)}, {"sandbox": other})]
    assert utils.aggregate_macro_mean(values).details["sandbox"] == [STRICT, other]


def processed(metric: str, names: tuple[str, ...]) -> dict[str, Any]:
    info = {
        "field_score_function": {"answer": metric},
        "aggregation": {"function": "mean", "field_weights": {"answer": 1}},
        "response_parse_function": "answer_string",
    }
    row = document(metric_info=info, eval_context={"test_case": []}, answer={"answer": "x"})
    with using(Policy(probe=lambda: only(names))):
        return utils.process_results(row, ["print(1)"])


def test_results_name_the_sandbox_where_programs_were_judged() -> None:
    judged = processed("program_judge", ("landlock", "seccomp"))
    assert judged["macro_mean"]["sandbox"] == STRICT
    assert "sandbox" not in processed("exact_str_match", ("landlock", "seccomp"))["macro_mean"]
    estimate = utils.aggregate_macro_mean([judged["macro_mean"]])
    assert estimate.details["sandbox"] == [STRICT]
    plain = utils.aggregate_macro_mean([processed("exact_str_match", ())["macro_mean"]])
    assert "sandbox" not in plain.details


def test_the_option_reaches_scoring_functions(tmp_path) -> None:
    changes = {"process_results": Function("utils.process_results")}
    for allowed in (False, True):
        options = TaskOptions(allow_unsafe_code=allowed)
        task = loaded(tmp_path / str(allowed), changes, CODE, options)
        (score,) = task.score(0, [Answer("x")]).scores
        assert score.metrics == {"exact_match": float(allowed)}
