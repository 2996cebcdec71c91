from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval.results import load
from lmms_eval.results.audit import Audit, OtherRule, audit, audit_text
from tests.results.run_reader.runs import FAILED, document, sample, write_run


def audited(tmp_path: Path, *values: dict[str, Any], names: tuple[str, ...] = ("acc",)) -> Audit:
    rows = [{**sample(number, finish_reason="stop"), "graded": 0, **value} for number, value in enumerate(values)]
    facts = document(higher_is_better={"quiz": dict.fromkeys(names, True)})
    run = load(write_run(tmp_path, [*rows, {**FAILED, "doc_id": 99}], facts))
    return audit(run.task("quiz"))


def test_shares_of_answers(tmp_path: Path) -> None:
    found = audited(
        tmp_path, {"resps": ""}, {"finish_reason": "length"}, {"finish_reason": "content_filter"}, {"drew": True}, {}
    )
    counts = (found.answers, found.blank, found.truncated, found.filtered, found.drawn, found.told)
    assert counts == (5, 1, 1, 1, 1, 0)


def test_rules_that_decided(tmp_path: Path) -> None:
    values = [
        {"predictions": {"score": 1, "step": "text", "fixed_step": "letter", "extracted": "A"}},
        {"predictions": {"score": 0, "step": "text", "fixed_step": "none", "extracted": None}},
    ]
    found = audited(tmp_path, *values, names=("predictions",))
    assert found.rules == {"step": {"text": 2}, "fixed_step": {"letter": 1, "none": 1}}
    assert (found.told, found.unparsed, found.ambiguous) == (2, 1, 0)


@pytest.mark.parametrize(
    ("read", "counts"),
    [
        (["A"], (0, 0)),
        ([[]], (1, 0)),
        ("", (1, 0)),
        (None, (1, 0)),
        (["A", "B"], (0, 1)),
        (["A", "A"], (0, 0)),
        ([["x", 1]], (0, 1)),
    ],
)
def test_what_was_read(tmp_path: Path, read: Any, counts: tuple[int, int]) -> None:
    found = audited(tmp_path, {"acc": {"score": 1, "parsed_pred": read}})
    assert (found.told, found.unparsed, found.ambiguous) == (1, *counts)


def test_scores_by_the_other_rule(tmp_path: Path) -> None:
    values = [
        {"acc": 1.0, "acc_fixed": 1.0},
        {"acc": 0.0, "acc_fixed": 1.0},
        {"acc": 1.0},
        {"acc_reference": 0.5, "acc": 1.0},
    ]
    found = audited(tmp_path, *values, names=("acc", "acc_fixed", "acc_reference"))
    assert found.others == (
        OtherRule("acc", "acc_fixed", 2, 0.5, 1.0, 1),
        OtherRule("acc", "acc_reference", 1, 1.0, 0.5, 1),
    )


def test_the_other_rule_within_a_value(tmp_path: Path) -> None:
    values = [{"macro_mean": {"score": s, "fixed": f}} for s, f in ((0.5, 1.0), (None, 1.0), (0.0, None))]
    found = audited(tmp_path, *values, names=("macro_mean",))
    assert found.others == (OtherRule("macro_mean", "macro_mean.fixed", 2, 0.25, 0.5, 1),)


def test_tables(tmp_path: Path) -> None:
    value = {"score": 1, "step": "<b>\x07|x", "fixed": 0}
    text = audit_text([audited(tmp_path, {"predictions": value}, names=("predictions",)), Audit("empty")])
    assert "\x07" not in text
    assert "\\<b\\>" in text
    assert "-1.0000" in text
    assert "not told" in text
