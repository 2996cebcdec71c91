from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from lmms_eval.compare.anchored import refuse_useless
from lmms_eval.compare.comparing import compare_runs
from lmms_eval.compare.gate import GatePolicy, check_gate
from lmms_eval.compare.matching import match_runs
from lmms_eval.compare.verdicts import CompareOptions, Difference
from lmms_eval.engine.headline import place_in
from lmms_eval.errors import LmmsEvalError
from lmms_eval.stats.sequence import Sampled
from lmms_eval.utils.numbers import ScoreRange
from tests.cases import for_each
from tests.compare.runs import column, run, stopped, task

ORDER = "random:0:abcd"
TOTAL = 600


def in_order(order: str = ORDER) -> list[str]:
    """All documents in the random order."""
    return sorted(map(str, range(TOTAL)), key=lambda doc_id: place_in(order, "quiz", doc_id))


def scores(share: float, seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    return {doc_id: float(rng.random() < share) for doc_id in map(str, range(TOTAL))}


def early(values: dict[str, Any], asked: int, order: str = ORDER, **facts: Any) -> Any:
    """A run that stopped after so many documents; its file has them in the order of their numbers."""
    ids = sorted(in_order(order)[:asked], key=int)
    return task([column([values[one] for one in ids], **facts)], ids=ids, early_stop=stopped(asked, TOTAL, order))


def whole(values: dict[str, Any], **facts: Any) -> Any:
    return task([column(list(values.values()), **facts)], ids=list(values))


def row_of(first: Any, second: Any, **options: Any) -> Difference:
    compared = compare_runs([run("a", first), run("b", second)], CompareOptions(draws=500, **options))
    (row,) = compared.pairs[0].rows
    return row


def expected(ids: Sequence[str], first: dict[str, float], second: dict[str, float]) -> Any:
    sampled = Sampled(TOTAL, ScoreRange(-1, 1), 0.95)
    for one in ids:
        sampled.add(first[one] - second[one])
    return sampled.interval()


@for_each("is_first", [True, False])
def test_an_early_run_and_a_whole_one_are_followed_in_the_random_order(is_first: bool) -> None:
    better, worse = scores(0.9, 1), scores(0.2, 2)
    sides = (early(better, 200), whole(worse)) if is_first else (whole(better), early(worse, 200))
    row = row_of(*sides)
    interval = expected(in_order()[:200], better, worse)
    assert row.interval is not None
    assert (row.interval.low, row.interval.high) == pytest.approx((interval.low, interval.high))
    assert (row.test, row.verdict, row.pairing.paired) == ("confidence sequence", "better", 200)
    assert row.notes == (
        "valid although one of them stopped early: over the first 200 of 600 documents of the random order; the "
        "interval is about this list of documents",
    )


def test_two_early_runs_share_the_documents_of_the_shorter() -> None:
    first, second = scores(0.5, 1), scores(0.5, 2)
    row = row_of(early(first, 300), early(second, 120))
    assert (row.pairing.paired, row.pairing.only_first) == (120, 180)
    interval = expected(in_order()[:120], first, second)
    assert row.interval is not None and row.interval.low == pytest.approx(interval.low)
    assert row.verdict == "cannot tell" and row.p is not None and row.p > 0.05
    assert "valid although both stopped early" in row.notes[0]


def test_documents_without_a_score_count_with_all_that_they_may_be() -> None:
    first, second = scores(0.9, 1), scores(0.2, 2)
    unknown = {one: None if number < 20 else first[one] for number, one in enumerate(in_order())}
    row = row_of(early(unknown, 200), whole(second))
    sampled = Sampled(TOTAL, ScoreRange(-1, 1), 0.95)
    for number, one in enumerate(in_order()[:200]):
        if number < 20:
            sampled.add(0 - second[one], 1 - second[one])
        else:
            sampled.add(first[one] - second[one])
    assert row.interval is not None and row.interval.low == pytest.approx(sampled.interval().low)
    assert row.pairing.paired == 180


def test_p_is_small_where_the_difference_is_great_and_the_margin_is_settled_by_the_same_sequence() -> None:
    first, second = scores(0.9, 1), scores(0.2, 2)
    row = row_of(early(first, 400), whole(second))
    assert row.p is not None and row.p < 1e-4
    alike = {one: 1.0 for one in first}
    row = row_of(early(alike, 500), whole(alike), margin=0.2)
    assert (row.verdict, row.p, row.p_list) == ("equivalent on this list", 1.0, 1.0)


def test_ahead_on_this_list_is_not_better_in_general() -> None:
    """Nearly all documents were asked: their difference is known, that of other questions is not."""
    first, second = scores(0.53, 1), scores(0.47, 2)
    row = row_of(early(first, 590), whole(second))
    assert row.verdict == "ahead on this list" and row.interval is not None and row.interval.low > 0
    assert row.p_holm is not None and row.p_holm > 0.05 >= (row.p_list or 1)
    assert (row.detectable, row.needed) == (None, None)  # they are about a number of documents that is fixed before
    assert row_of(whole(second), early(first, 590)).verdict == "behind on this list"


def test_clusters_leave_only_this_list() -> None:
    first, second = scores(0.9, 1), scores(0.2, 2)
    ids = in_order()[:200]
    pairs = [f"c{number // 2}" for number in range(TOTAL)]
    sides = (
        task([first[one] for one in ids], ids=ids, early_stop=stopped(200, TOTAL), clusters=pairs[:200]),
        task(list(second.values()), ids=list(second), clusters=pairs),
    )
    row = row_of(*sides)
    assert (row.p, row.verdict) == (None, "ahead on this list")


def test_what_no_sequence_holds_for_has_no_interval_and_says_why() -> None:
    first, second = scores(0.9, 1), scores(0.2, 2)
    other = "random:7:abcd"
    row = row_of(early(first, 200), early(second, 200, other))
    assert (row.interval, row.no_interval) == (None, "stopped early in different random orders")
    assert (row.p, row.verdict) == (None, "cannot tell")
    free = {"score_range": ScoreRange(0)}
    row = row_of(early(first, 200, **free), whole(second, **free))
    assert row.no_interval == "stopped early, range 0 to inf"
    strange = task(list(first.values()), ids=list(first), early_stop=stopped(TOTAL, TOTAL, "by length"))
    assert row_of(strange, whole(second)).no_interval == "stopped early in an order that is not known here"


def test_parts_of_an_early_run_have_intervals_that_hold_at_every_look() -> None:
    values, zeros = scores(0.5, 1), dict.fromkeys(scores(0.5, 1), 0.0)
    ids = sorted(in_order()[:300], key=int)
    kinds = ["x" if number % 4 else "y" for number in range(299)] + ["z"]
    first = task([values[one] for one in ids], ids=ids, early_stop=stopped(300, TOTAL), metadata={"app": kinds})
    compared = compare_runs([run("a", first), run("b", whole(zeros))], CompareOptions(draws=500, by=("app",)))
    cells = {cell.cell: cell for cell in compared.pairs[0].cells["app"]}
    whole_interval = compared.pairs[0].rows[0].interval
    assert whole_interval is not None
    for name, size in {"x": 224, "y": 75, "z": 1}.items():
        interval = cells[name].interval
        assert cells[name].pairing.paired == size
        assert interval is not None and interval.low <= cells[name].value <= interval.high
        assert interval.high - interval.low > whole_interval.high - whole_interval.low
    assert (cells["x"].verdict, cells["z"].verdict) == ("ahead on this list", "cannot tell")
    assert cells["z"].notes[-1] == "few documents (below 30)"


def test_runs_that_stopped_over_strata_have_no_interval_and_the_reason() -> None:
    values = scores(0.6, 1)
    ids = list(values)[:90]
    first = task([column([values[one] for one in ids])], ids=ids, early_stop=stopped(90, TOTAL, "strata:0:abcd"))
    row = row_of(first, whole(scores(0.5, 2)))
    assert row.interval is None and row.p is None and row.no_interval.startswith("stopped early over strata")


@for_each(("chances", "outcome"), [((0.9, 0.2), "held"), ((0.2, 0.9), "fell"), ((0.53, 0.51), "cannot tell")])
def test_a_gate_decides_for_questions_like_these(chances: tuple[float, float], outcome: str) -> None:
    first, second = scores(chances[0], 1), scores(chances[1], 2)
    policy = GatePolicy(tasks={"quiz": {}}, margin=0.02, minimum_coverage=0.5)
    (check,) = check_gate(run("a", early(first, 590)), run("b", whole(second)), policy).checks
    assert check.outcome == outcome
    if outcome == "cannot tell":  # nearly all of the list is known, and it says nothing of other questions
        assert check.reason == "held on this list of documents; unknown for questions like these"


def related(count: int, seed: int) -> list[dict[str, float]]:
    """Runs whose chances to solve a document are the same."""
    rng = np.random.default_rng(seed)
    chances = rng.beta(0.5, 0.5, TOTAL)
    return [
        {one: float(rng.random() < p) for one, p in zip(map(str, range(TOTAL)), chances, strict=True)}
        for _ in range(count)
    ]


@for_each("is_first", [True, False])
def test_anchors_narrow_the_difference_between_an_early_run_and_a_whole_one(is_first: bool) -> None:
    new, other, *earlier = related(4, 3)
    sides = (early(new, 200), whole(other)) if is_first else (whole(other), early(new, 200))
    anchors = tuple(run(f"earlier{number}", whole(one)) for number, one in enumerate(earlier))
    plain, row = row_of(*sides), row_of(*sides, anchors=anchors)
    assert row.interval is not None and plain.interval is not None and row.interval.method == "betting with anchors"
    assert row.interval.estimand == "benchmark accuracy"
    assert row.interval.high - row.interval.low < 0.85 * (plain.interval.high - plain.interval.low)
    truth = (1 if is_first else -1) * (sum(new.values()) - sum(other.values())) / TOTAL
    assert row.interval.low <= truth <= row.interval.high
    assert row.p == plain.p and row.value == plain.value  # about questions like these, and the documents asked
    assert row.notes[0].endswith("this list of documents; with --anchors earlier0, earlier1")


def test_the_difference_with_anchors_holds_whatever_they_are() -> None:
    new, other, good = related(3, 5)
    bad = {one: 1 - score for one, score in new.items()}
    truth, rounds = (sum(new.values()) - sum(other.values())) / TOTAL, 15
    for anchor in (good, bad):
        held = 0
        for seed in range(rounds):
            order = f"random:{seed}:abcd"
            row = row_of(early(new, 150, order), whole(other), anchors=(run("earlier", whole(anchor)),))
            assert row.interval is not None
            held += row.interval.low <= truth <= row.interval.high
        assert held >= rounds - 3


def test_anchors_that_narrow_nothing_are_named_in_a_line() -> None:
    new, other, earlier = related(3, 3)
    anchors = (run("earlier", whole(earlier)),)
    both = row_of(early(new, 200), early(other, 300), anchors=anchors)
    assert both.interval == row_of(early(new, 200), early(other, 300)).interval
    assert both.notes[0].endswith(
        "no --anchors: both runs stopped early, so anchors would be subtracted from both and cancel"
    )
    options = CompareOptions(draws=500, anchors=anchors)
    compared = compare_runs([run("a", whole(new)), run("b", whole(other))], options)
    assert any("--anchors narrow nothing for quiz" in note for note in compared.notes)


def test_runs_that_are_no_anchors_are_refused() -> None:
    new, other, earlier = related(3, 3)
    pairs = match_runs([run("a", early(new, 200)), run("b", whole(other))], CompareOptions())
    elsewhere = task([column([1.0, 0.0])], ids=["x", "y"])
    wide = whole({one: 7.0 for one in earlier})
    cases = [
        (elsewhere, "no document of the runs"),
        (wide, "is 7 there, and lies from"),
        (early(earlier, 300), "stopped early in the same random order"),
    ]
    for rows, message in cases:
        with pytest.raises(LmmsEvalError, match=message) as caught:
            refuse_useless([run("earlier", rows)], pairs)
        assert caught.value.exit_code == 2 and "\n" not in str(caught.value)
    with pytest.raises(LmmsEvalError, match="no samples of quiz; it has tasks: other"):
        refuse_useless([run("earlier", task([1.0, 0.0], "other"))], pairs)
