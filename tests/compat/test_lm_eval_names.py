"""Functions that task files of lm-eval import."""

from __future__ import annotations

import random

import pytest

from lmms_eval.compat.lm_eval_names import (
    handle_arg_string,
    handle_non_serializable,
    ratio,
    sanitize_model_name,
    simple_parse_args_string,
    weighted_f1_score,
)
from tests.cases import for_each


def test_weighted_f1_is_that_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="extra dev")
    drawn = random.Random(1)
    for size in (1, 2, 5, 40):
        pairs = [(drawn.randrange(4), drawn.randrange(5)) for _ in range(size)]
        golds, answers = zip(*pairs, strict=True)
        expected = metrics.f1_score(golds, answers, average="weighted", zero_division=0)
        assert weighted_f1_score(pairs) == pytest.approx(expected)
    assert weighted_f1_score([("a", "a"), ("b", "c")]) == 0.5
    with pytest.raises(IndexError):
        weighted_f1_score([])


@for_each(
    ("one", "other", "value"),
    [("abcd", "abcd", 100), ("abcd", "bcde", 75), ("abc", "xyz", 0), ("", "", 100), ("", "a", 0), (None, "a", 0)],
)
def test_ratio(one: str | None, other: str, value: int) -> None:
    assert ratio(one, other) == value


def test_arguments_are_read_as_lm_eval_reads_them() -> None:
    texts = ["true", "NONE", "7", "-7", "1e-3", "'7'", "\"7'", "7,5", "", "'"]
    assert list(map(handle_arg_string, texts)) == [True, None, 7, -7, 0.001, "7", "\"7'", "7,5", "", "'"]
    assert simple_parse_args_string("a=1,b=x=y,c,,d=[1,2]") == {"a": 1, "b": "x=y", "c": "", "d": "[1", "2]": ""}
    assert simple_parse_args_string(None) == {}


def test_values_for_json_and_file_names() -> None:
    import numpy as np

    values = [np.int8(3), np.bool_(False), {2}, (1,), None]
    assert [handle_non_serializable(value) for value in values] == [3, False, [2], "(1,)", "None"]
    assert sanitize_model_name("a/b/c:d") == "a__b__c__d"


def test_the_names_are_importable_at_their_paths() -> None:
    from lmms_eval.compat.lm_eval.api.metrics import mean, mean_stderr, weighted_mean
    from lmms_eval.compat.lm_eval.fuzzywuzzy import fuzz
    from lmms_eval.compat.lm_eval.transformers_metrics.squad_metrics import compute_exact, compute_f1
    from lmms_eval.compat.lm_eval.utils import pattern_match

    assert (mean([1, 2]), mean_stderr([0, 1]), weighted_mean([(1.0, 2.0)])) == (1.5, 0.5, 0.5)
    assert fuzz.ratio("a", "a") == 100
    assert (compute_exact("The cat", "cat"), compute_f1("a cat", "cat dog")) == (1, pytest.approx(2 / 3))
    assert compute_f1("", "") == 1
    assert pattern_match("a*", ["ab", "b"]) == ["ab"]
