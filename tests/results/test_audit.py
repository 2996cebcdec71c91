from __future__ import annotations

from pathlib import Path
from typing import Any

from lmms_eval.results import load
from lmms_eval.results.audit import Audit, Auditor, OtherRule, audit, audit_text
from lmms_eval.results.run import Choice
from lmms_eval.results.sample import Sample
from lmms_eval.stats import Interval
from lmms_eval.stats.differences import PairOptions, compare_pairs
from lmms_eval.utils.numbers import ScoreRange
from lmms_eval.utils.where import parse_where
from tests.cases import for_each
from tests.results.runs import FAILED, document, sample, write_run

SHARE = ScoreRange(0.0, 1.0)


def audited(tmp_path: Path, *values: dict[str, Any], names: tuple[str, ...] = ("acc",)) -> Audit:
    rows = [{**sample(number, finish_reason="stop"), "graded": 0, **value} for number, value in enumerate(values)]
    facts = document(higher_is_better={"quiz": dict.fromkeys(names, True)})
    run = load(write_run(tmp_path, [*rows, {**FAILED, "doc_id": 99}], facts))
    (found,) = audit(run, run.task("quiz"))
    return found


def test_shares_of_answers(tmp_path: Path) -> None:
    found = audited(
        tmp_path, {"resps": ""}, {"finish_reason": "length"}, {"finish_reason": "content_filter"}, {"drew": True}, {}
    )
    counts = (found.answers, found.blank, found.truncated, found.filtered, found.drawn, found.told)
    assert counts == (5, 1, 1, 1, 1, 0)


@for_each(("shots", "is_clustered"), [(0, True), (1, False), (None, False)])
def test_clusters_of_a_run_without_results_are_those_of_its_media(shots: int | None, is_clustered: bool) -> None:
    """Documents about one picture form a cluster, unless it may be that of an example."""
    facts = {"configs": {"quiz": {"num_fewshot": shots}}, "higher_is_better": {"quiz": {"acc": True}}}
    auditor, first, second, clusters = Auditor("quiz", facts), [], [], []
    for number in range(20):
        scores = (float(number % 3 == 0), float(number % 4 < 2))
        media = [{"type": "image", "path": f"{number // 4}.png"}]
        line = sample(number, finish_reason="stop", sent_media=media, acc=scores[0], acc_fixed=scores[1])
        auditor.see(Sample("quiz", line))
        first.append(scores[0]), second.append(scores[1]), clusters.append(number // 4)
    (found,) = auditor.audits()
    (other,) = found.others
    expected = compare_pairs(second, first, clusters if is_clustered else None, PairOptions()).interval
    assert isinstance(expected, Interval)
    assert (other.low, other.high) == (expected.low, expected.high)


def test_rules_that_decided(tmp_path: Path) -> None:
    values = [
        {"predictions": {"score": 1, "step": "text", "fixed_step": "letter", "extracted": "A"}},
        {"predictions": {"score": 0, "step": "text", "fixed_step": "none", "extracted": None}},
    ]
    found = audited(tmp_path, *values, names=("predictions",))
    assert found.rules == {"step": {"text": 2}, "fixed_step": {"letter": 1, "none": 1}}
    assert (found.told, found.unparsed, found.ambiguous) == (2, 1, 0)


@for_each(
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
    fixed, reference = found.others
    assert (fixed.other, fixed.n, fixed.mean, fixed.other_mean, fixed.higher, fixed.lower) == (
        "acc_fixed", 2, 0.5, 1.0, 1, 0,
    )  # fmt: skip
    assert reference == OtherRule("acc", "acc_reference", 1, 1.0, 0.5, 0, 1, None, None, "n = 1")


def test_the_other_rule_within_a_value(tmp_path: Path) -> None:
    values = [{"macro_mean": {"score": s, "fixed": f}} for s, f in ((0.5, 1.0), (None, 1.0), (0.0, None))]
    found = audited(tmp_path, *values, names=("macro_mean",))
    (other,) = found.others
    assert (other.metric, other.other, other.n, other.mean, other.other_mean) == (
        "macro_mean", "macro_mean.fixed", 2, 0.25, 0.5,
    )  # fmt: skip
    assert (other.higher, other.lower, other.differing) == (1, 0, 1)


FORTY = [{"acc": 0.0, "acc_fixed": float(number < 10)} for number in range(40)]


def other_of(tmp_path: Path, facts: dict[str, Any], chosen: Choice | None = None) -> OtherRule:
    names = {"higher_is_better": {"quiz": {"acc": True, "acc_fixed": True}}}
    rows = [{**sample(number), "doc": {"scene": str(number % 4)}, **value} for number, value in enumerate(FORTY)]
    run = load(write_run(tmp_path, rows, document(**names | facts)))
    (found,) = audit(run, run.task("quiz"), chosen)
    return found.others[0]


def test_the_difference_has_the_interval_of_paired_documents(tmp_path: Path) -> None:
    other = other_of(tmp_path, {})
    expected = compare_pairs([row["acc_fixed"] for row in FORTY], [0.0] * 40, None, PairOptions(within=SHARE)).interval
    assert isinstance(expected, Interval)
    assert (other.low, other.high, other.method) == (expected.low, expected.high, expected.method)
    assert 0 < expected.low < 0.25 < expected.high < 1


def test_clusters_widen_it_and_early_ends_and_choices_leave_none(tmp_path: Path) -> None:
    plain = other_of(tmp_path / "plain", {})
    configs = {"quiz": {"metric_list": [{"metric": "acc"}], "cluster_key": "scene"}}
    clustered = other_of(tmp_path / "clusters", {"configs": configs})
    assert plain.low is not None
    assert clustered.low is not None
    assert clustered.low < plain.low
    early = other_of(tmp_path / "early", {"early_stop": {"quiz": {"asked": 40, "of": 90}}})
    assert (early.low, early.method) == (None, "stopped early")
    chosen = other_of(tmp_path / "chosen", {}, Choice(where=parse_where("score < 1")))
    assert (chosen.low, chosen.method) == (None, "chosen samples")


def test_pipelines_are_counted_apart(tmp_path: Path) -> None:
    rows = [
        {**sample(0), "filter": name, "acc": {"score": 1, "parsed_pred": read}}
        for name, read in (("a", ""), ("b", "x"))
    ]
    run = load(write_run(tmp_path, rows))
    found = audit(run, run.task("quiz"))
    assert [(one.filter, one.answers, one.unparsed) for one in found] == [("a", 1, 1), ("b", 1, 0)]
    assert "|quiz, b|" in audit_text(found)


def test_tables(tmp_path: Path) -> None:
    value = {"score": 1, "step": "<b>\x07|x", "fixed": 0}
    audits = [audited(tmp_path, {"predictions": value}, names=("predictions",)), Audit("empty")]
    text = audit_text(audits)
    assert "\x07" not in text
    assert "\\<b\\>" in text
    assert "-1.0000" in text
    assert "not reported" in text
