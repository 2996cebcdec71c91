"""``--sample``: a random sample of the documents, and what the results say about the whole list."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from benchmarks.workload import text_task
from lmms_eval.api.request import Request, Response
from lmms_eval.engine.headline import RandomOrder
from lmms_eval.engine.plan import plan_task, sampled
from lmms_eval.engine.uncertainty import UNKNOWN, Certainty, mean_over_lists
from lmms_eval.errors import ConfigError, UsageError
from lmms_eval.evaluation.run import run
from lmms_eval.evaluation.writing import RunReport
from lmms_eval.stats.finite import share_limits
from lmms_eval.stats.interval import Interval
from lmms_eval.utils.numbers import ScoreRange
from tests.cases import for_each
from tests.engine.fakes import FakeTask
from tests.evaluation import kit

DOCUMENTS = 60
EXACT = "exact_match,none"


class Stratified(FakeTask):
    """Document d is in one of three strata of very different sizes."""

    def strata(self, doc_ids: Any) -> list[str]:
        return ["large" if doc_id < 80 else "small" if doc_id < 97 else "tiny" for doc_id in doc_ids]


def two_thirds(request: Request) -> Response:
    return kit.right(request) if request.doc_id % 3 else Response(request.id, text="no")


def started(tmp_path: Path, answer: Any = two_thirds, **options: Any) -> tuple[RunReport, kit.Told]:
    if not (tmp_path / "tasks").exists():
        kit.tasks(tmp_path, DOCUMENTS)
    model = kit.Told(answer)
    return run(kit.config(tmp_path, model="told", **options), model), model


def shown(report: RunReport) -> str:
    return "\n".join([report.table, *report.lines])


def test_a_sample_is_the_start_of_the_random_order_and_larger_ones_contain_it() -> None:
    plan = plan_task(FakeTask(200), None, 0)
    some = sampled(plan, 20, is_stratified=False, seed=3)
    assert list(some.doc_ids) == sorted(RandomOrder(3).of(plan)[:20]) and some.sample is not None
    assert (some.sample.of, some.sample.design, some.original) == (200, "simple", 200)
    assert set(some.doc_ids) < set(sampled(plan, 50, is_stratified=False, seed=3).doc_ids)
    assert some.doc_ids != sampled(plan, 20, is_stratified=False, seed=4).doc_ids
    assert sampled(plan, 200, is_stratified=False, seed=3) is plan


def test_strata_get_their_share_and_two_documents_at_least() -> None:
    plan = plan_task(Stratified(100), None, 0)
    some = sampled(plan, 20, is_stratified=True, seed=0)
    assert some.sample is not None and some.sample.design == "stratified"
    assert {name: len(each) for name, each in some.sample.order.items()} == {"large": 15, "small": 3, "tiny": 2}
    assert some.sample.sizes == {"large": 80, "small": 17, "tiny": 3} and some.requested == 20
    with pytest.raises(UsageError, match="has 3 strata, and each needs two documents"):
        sampled(plan, 5, is_stratified=True, seed=0)
    with pytest.raises(UsageError, match="has no strata"):
        sampled(plan_task(FakeTask(100), None, 0), 20, is_stratified=True, seed=0)


def test_results_and_table_name_the_sample_and_what_its_interval_is_about(tmp_path: Path) -> None:
    report, model = started(tmp_path, sample="30")
    assert len(model.asked) == 30
    entry = report.results["sampled"][kit.NAME]
    right = sum(doc_id % 3 > 0 for doc_id in model.asked)
    low, high = share_limits(right, 30, DOCUMENTS)
    assert entry == {
        "design": "simple",
        "seed": 0,
        "asked": 30,
        "of": DOCUMENTS,
        "about": "the score over all 60 documents of this list",
        "intervals": {EXACT: {"low": low, "high": high, "method": "hypergeometric", "estimand": "benchmark accuracy"}},
    }
    usual = report.results["intervals"][kit.NAME][EXACT]
    assert usual["low"] < low < high < usual["high"]
    assert f"{right / 30:.4f} (random sample: 30 of 60)" in shown(report)
    assert f"drawn by seed 0: over this list, exact_match [{low:.4f}, {high:.4f}]" in shown(report)


def test_a_document_of_the_sample_that_failed_counts_from_end_to_end(tmp_path: Path) -> None:
    _, model = started(tmp_path, sample="30")
    failing = model.asked[3]

    def fails(request: Request) -> Response:
        return Response.failure(request.id, "timeout", "-") if request.doc_id == failing else two_thirds(request)

    report, _ = started(tmp_path, fails, sample="30", error_budget=0.1, output_path=str(tmp_path / "failing"))
    right = sum(doc_id % 3 > 0 for doc_id in model.asked if doc_id != failing)
    found = report.results["sampled"][kit.NAME]["intervals"][EXACT]
    assert found["low"] == share_limits(right, 30, DOCUMENTS)[0]
    assert found["high"] == share_limits(right + 1, 30, DOCUMENTS)[1]


def test_the_sample_is_part_of_the_run_key(tmp_path: Path) -> None:
    keys = [started(tmp_path, sample=sample)[0].results["run_key"] for sample in ("30", "31", None)]
    assert len({*keys}) == 3


def test_the_first_documents_are_named_as_no_random_sample(tmp_path: Path) -> None:
    limited, _ = started(tmp_path, limit=5)
    assert f"--limit: the first 5 documents of {kit.NAME}: CI95 is as wide as for a random sample" in shown(limited)
    whole, _ = started(tmp_path, output_path=str(tmp_path / "whole"))
    one, _ = started(tmp_path, limit=1, output_path=str(tmp_path / "one"))
    assert "the first" not in shown(one)  # there is no interval
    assert "the first" not in shown(whole) and "sampled" not in whole.results


@for_each(
    ("options", "message"),
    [
        ({"sample": "0"}, "give a number of documents from 1 on, N:stratified"),
        ({"sample": "ten"}, "give a number of documents from 1 on, N:stratified"),
        ({"sample": "10:"}, "give a number of documents from 1 on, N:stratified"),
        ({"sample": "10:evenly"}, "give a number of documents from 1 on, N:stratified"),
        ({"sample": "10:neyman"}, "divides the documents by earlier scores: name the runs with --anchors"),
        ({"sample": "10:neyman", "anchors": "nowhere"}, "there is no run nowhere"),
        ({"sample": "10:neyman", "anchors": ".", "order": "random"}, "does not go with --order"),
        ({"sample": "10:neyman", "anchors": ".", "ablate": "no-media"}, "does not go with --ablate"),
        ({"sample": "10:neyman", "anchors": ".", "repeat_share": 0.1}, "does not go with --repeat_share"),
        ({"sample": "10", "anchors": "."}, "add --order random, --until RULE, or --sample N:neyman"),
        ({"sample": "10", "limit": 5}, "--sample does not go with --limit"),
        ({"sample": "10", "offset": 5}, "--sample does not go with --offset"),
        ({"sample": "10", "until": "halfwidth<=0.1"}, "--sample does not go with --until"),
    ],
)
def test_what_makes_no_sample_is_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        kit.config(tmp_path, **options)


GROUP = """group: votes
task: [bench_text, other_text]
aggregate_metric_list:
  - metric: exact_match
    aggregation: mean
    weight_by_size: {by_size}
"""


@pytest.mark.parametrize("by_size", ["false", "true"])
def test_a_group_has_an_interval_over_the_lists_of_its_tasks(tmp_path: Path, by_size: str) -> None:
    folder = kit.tasks(tmp_path, DOCUMENTS)
    text_task(folder, 20, "other_text")
    (folder / "votes.yaml").write_text(GROUP.format(by_size=by_size))
    report, _ = started(tmp_path, tasks="votes", sample="30")
    entry = report.results["sampled"]["votes"]
    assert (entry["design"], entry["asked"], entry["of"]) == ("by task", 50, 80)
    found = entry["intervals"][EXACT]
    if by_size == "true":
        assert found["low"] is None and "weighted by the documents asked" in found["reason"]
        return
    own = report.results["sampled"][kit.NAME]["intervals"][EXACT]
    value = report.results["results"]["votes"][EXACT]
    assert found["low"] < value < found["high"] and found["estimand"] == "benchmark accuracy"
    # The other task was asked as a whole, so only half the distance of the first one is left.
    assert found["high"] - found["low"] == pytest.approx((own["high"] - own["low"]) / 2)
    assert "votes: random samples of its tasks: over their lists, exact_match [" in shown(report)
    several, _ = started(tmp_path, tasks="votes", sample="15", output_path=str(tmp_path / "both"))
    wide = several.results["sampled"]["votes"]["intervals"][EXACT]
    assert wide["high"] - wide["low"] > found["high"] - found["low"]


def test_a_mean_over_lists_holds() -> None:
    source, held, rounds = random.Random(5), 0, 300
    lists = [[float(source.random() < p) for _ in range(size)] for size, p in ((60, 0.9), (40, 0.1), (90, 0.5))]
    mean = sum(sum(one) / len(one) for one in lists) / 3
    for _ in range(rounds):
        parts = []
        for one in lists:
            right = sum(source.sample(one, 15))
            low, high = share_limits(int(right), 15, len(one))
            certainty = Certainty(Interval(low, high, "hypergeometric"), score_range=ScoreRange(0, 1))
            parts.append((right / 15, certainty, 15))
        found = mean_over_lists(parts).interval
        assert found is not None
        held += found.low <= mean <= found.high
    assert held / rounds >= 0.94
    assert mean_over_lists([(0.5, UNKNOWN, 9)]).no_interval == "a task has no interval over its list"
