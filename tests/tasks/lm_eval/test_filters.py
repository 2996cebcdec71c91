"""Tests of the filters of ``lmms_eval.tasks.lm_eval.scoring``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.task import Answer
from lmms_eval.errors import LmmsEvalError
from lmms_eval.tasks.lm_eval.scoring import PairsFilter, SpanFilter, TrimFilter
from tests.cases import for_each
from tests.tasks.kit import Function
from tests.tasks.lm_eval.kit import opened, pack_task


def pipeline(*steps: dict[str, Any], name: str = "own") -> dict[str, Any]:
    return {"filter_list": [{"name": name, "filter": list(steps)}]}


def filtered(folder: Path, changes: dict[str, Any], *answers: str, code: str = "") -> Any:
    task = opened(folder, {"repeats": max(1, len(answers)), **changes}, code)
    return task.score(0, [Answer(answer) for answer in answers]).scores[0].filtered


def test_without_filters_the_first_answer_counts_untrimmed(tmp_path: Path) -> None:
    assert filtered(tmp_path, {}, " blue\n", "red") == [" blue\n"]


def test_trimming_is_of_both_ends(tmp_path: Path) -> None:
    steps = pipeline({"function": "remove_whitespace"}, {"function": "take_first"})
    assert filtered(tmp_path, steps, " blue \n") == ["blue"]
    assert TrimFilter().apply([[" a ", "b"]], [{}]) == [["a", "b"]]


def test_a_pipeline_without_take_first_leaves_a_list(tmp_path: Path) -> None:
    assert filtered(tmp_path, pipeline({"function": "lowercase"}), "A", "B") == [["a", "b"]]


def test_a_filter_of_the_task(tmp_path: Path) -> None:
    code = "def last(resps, docs):\n    return ([answers[-1] + doc['q']] for answers, doc in zip(resps, docs))\n"
    steps = pipeline({"function": "custom", "filter_fn": Function("utils.last")}, {"function": "take_first"})
    assert filtered(tmp_path, steps, "A", "B", code=code) == ["Bsky"]


def test_pairs_and_spans() -> None:
    assert PairsFilter().apply([["('x', 'PER') ('y', 'LOC')", "none", [("a", "b")]]], [{}]) == [
        [["PER", "LOC"], ["invalid"], [("a", "b")]]
    ]
    found = SpanFilter().apply([["People: Ann, Bob\nCountry: none, Chad$$", "nothing"]], [{}])
    assert found == [["per: ann $ per: bob $ loc: chad", ""]]


@for_each(
    ("stated", "message"),
    [
        ([{"name": "a", "filter": "regex"}], r"an entry needs name and filter \(a list\)"),
        ([{"name": "a", "filter": [{"function": "regexx"}]}], "unknown filter 'regexx'"),
        ([{"name": "a", "filter": [{"function": "regex", "pattern": "x"}]}], "filter 'regex'"),
        ([{"name": "a", "filter": [{"function": "custom"}]}], "filter_fn"),
    ],
)
def test_a_wrong_filter_is_named(tmp_path: Path, stated: Any, message: str) -> None:
    with pytest.raises(LmmsEvalError, match=message):
        pack_task(tmp_path, {"filter_list": stated})
