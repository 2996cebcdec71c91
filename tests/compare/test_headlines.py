from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from lmms_eval.cli.main import main
from lmms_eval.compare.comparing import compare_runs
from lmms_eval.compare.gate import GatePolicy, check_gate
from lmms_eval.compare.headlines import LEFT_OUT, HeadlineFinding, find_headlines
from lmms_eval.compare.matching import Shared
from lmms_eval.compare.readers import read_runs
from lmms_eval.compare.redrawing import Redrawing
from lmms_eval.compare.runs import RunRows
from lmms_eval.compare.verdicts import CompareOptions
from lmms_eval.errors import LmmsEvalError
from lmms_eval.stats import bootstrap_stderr
from lmms_eval.tasks.general_bench.facts import tasks_by_id
from lmms_eval.tasks.general_bench.levels import paper, registering, tables
from lmms_eval.tasks.general_bench.levels.paper import final_levels
from lmms_eval.tasks.general_bench.summary import TaskScore
from lmms_eval.tasks.mmie.summary import table
from lmms_eval.utils.numbers import SHARES, ScoreRange
from tests.compare.headline_runs import found, rows, run

DEMOS = ("megabench_demo", "milebench_demo", "general_bench_demo_audio")


def _demo(folder: Path, strategy: str) -> RunRows:
    arguments = ["--model", "baseline", "--model_args", f"strategy={strategy},text=B", "--tasks", ",".join(DEMOS)]
    assert main(
        [*arguments, "--bootstrap_iters", "0", "--log_samples", "--output_path", str(folder), "--verbosity", "ERROR"]
    ) in (0, 3)
    return read_runs([str(folder)])[0]


@pytest.fixture(scope="module")
def demos(tmp_path_factory) -> tuple[RunRows, RunRows]:
    folder = tmp_path_factory.mktemp("demos")
    return _demo(folder / "gold", "gold"), _demo(folder / "constant", "constant")


def _pairs(first: RunRows, second: RunRows) -> dict[str, Shared]:
    pairs = {}
    for name, task in first.tasks.items():
        places = {one: number for number, one in enumerate(second.tasks[name].ids)}
        both = [(number, places[one]) for number, one in enumerate(task.ids) if one in places]
        left, right = (np.array([pair[side] for pair in both]) for side in (0, 1))
        pairs[name] = Shared(task, second.tasks[name], left, right, 0, 0)
    return pairs


def test_over_all_documents_the_numbers_are_those_of_the_benchmarks_reports(demos):
    first, second = demos
    rows_of = {one.row.name: one.row for one in find_headlines(first, second, _pairs(first, second))}
    for number, one in enumerate(demos):
        value = {name: (row.first, row.second)[number] for name, row in rows_of.items()}
        results = one.results
        assert value["megabench_demo"] == pytest.approx(
            results["results"]["megabench_demo"]["macro_mean,none"], abs=1e-12
        )
        report = results["milebench_report"]["demo"]
        for name, entry in {**report["overall"], **report["groups"]}.items():
            if f"milebench_demo {name}" in value:
                scores = (entry.get("partial") or entry)["official"]
                assert value[f"milebench_demo {name}"] == pytest.approx(scores["score"] / 100, abs=1e-12), name
    assert not any(name.startswith("megabench overall") for name in rows_of)  # its one task is the whole of it
    assert rows_of["megabench_demo"].interval.low > 0
    assert rows_of["megabench_demo"].p < 0.01
    assert {"milebench_demo Realistic", "milebench_demo Diagnostic", "milebench_demo Needles only"} <= rows_of.keys()


def test_levels_over_all_documents_are_those_of_the_report(demos):
    gold = demos[0]
    rows_of = {one.row.name: one.row for one in find_headlines(gold, gold, _pairs(gold, gold))}
    report = gold.results["general_bench_report"]["general_bench_demo"]
    # what stands in files of the demonstration is no answer of the run
    scores = [TaskScore.from_dict(one) for one in report["tasks"] if one["task"] not in report["from_files"]]
    table_of = registering.register("model", [one.result() for one in scores], tables.template(), "paper").table
    levels = paper.rank_paper("model", table_of).levels
    assert levels[2] > 0
    for level, score in levels.items():
        row = rows_of[f"general_bench_demo level {level}"]
        assert (row.first, row.second, row.value) == (
            pytest.approx(score, abs=1e-9),
            pytest.approx(score, abs=1e-9),
            0.0,
        )
        assert row.interval is None


def test_runs_that_get_everything_wrong_are_not_shown_to_be_equal():
    """Without a right answer the score of one follows from the range, so that the interval is no single point."""
    wrong = rows("milebench_demo_webqa", {"predictions,none": [{"score": 0.0}] * 9})
    other = rows("milebench_demo_slidevqa", {"predictions,none": [{"score": 0.0}] * 9})
    both = run(wrong, other)
    for one in found(both, both).values():
        assert one.row.interval.low < -0.1 and one.row.interval.high > 0.1


def _query(name: str, score: float, kind: str = "rule") -> dict:
    return {"task_name": name, "eval_type": kind, "query": score, "score": score, "fixed": None, "num_demo": 0}


def test_mega_bench_overall_weights_core_and_open_by_their_tasks():
    from lmms_eval.tasks.megabench.facts import labels

    names = list(labels())[:6]
    rng = random.Random(1)

    def one(share: float) -> RunRows:
        core = [_query(name, float(rng.random() < share)) for name in names[:4] for _ in range(5)]
        judged = [_query(name, float(rng.random() < share), "llm") for name in names[4:] for _ in range(7)]
        columns = [{"macro_mean,none": values} for values in (core, judged)]
        return run(
            *(
                rows(n, c, {"macro_mean,none": 0.5})
                for n, c in zip(("megabench_core", "megabench_open"), columns, strict=True)
            )
        )

    first, second = one(0.9), one(0.4)
    result = found(first, second)
    core, judged, overall = (
        result[name].row for name in ("megabench_core", "megabench_open", "megabench overall, full set")
    )
    assert overall.first == pytest.approx((4 * core.first + 2 * judged.first) / 6, abs=1e-12)
    assert overall.pairing.paired == core.pairing.paired + judged.pairing.paired == 34
    assert overall.interval.low < overall.value < overall.interval.high


def _sample(tag: str, score: int | None) -> dict:
    outcome = "scored" if score is not None else "unscored"
    return {"category": tag, "field": "f", "subfield": "s", "score": score, "outcome": outcome}


def test_mmie_is_that_of_its_table_and_leaves_out_samples_without_a_score():
    rng = random.Random(2)
    tags = ["SA"] * 20 + ["PBL"] * 30 + ["MSR"] * 10
    first, second = ([_sample(tag, rng.randrange(7)) for tag in tags] for _ in range(2))
    whole = table(first)
    result = found(run(rows("mmie", {"judged,none": first})), run(rows("mmie", {"judged,none": second})))
    assert {name: one.row.first for name, one in result.items()} == {
        f"mmie {tag}": pytest.approx(row.mean) for tag, row in whole.categories.items()
    }
    second[0] = _sample("SA", None)
    result = found(run(rows("mmie", {"judged,none": first})), run(rows("mmie", {"judged,none": second})))
    assert result["mmie AVG"].row.pairing.paired == 59
    assert result["mmie AVG"].row.pairing.unscored == (0, 1)


def test_levels_of_scores_are_those_of_a_ranked_table():
    chosen = [facts for facts in tasks_by_id().values() if facts.metric == "accuracy"][:40]
    scores = {facts: 10.0 + number for number, facts in enumerate(chosen)}
    results = [TaskScore(facts.id, "m", score, score, None, 1, 1).result() for facts, score in scores.items()]
    table_of = registering.register("model", results, tables.template(), "paper").table
    assert final_levels(scores) == paper.rank_paper("model", table_of).levels


def test_group_takes_the_weights_that_give_the_runs_own_numbers():
    rng = np.random.default_rng(3)
    sizes = {"a": 40, "b": 10}
    scores = [{name: rng.integers(0, 2, size).astype(float).tolist() for name, size in sizes.items()} for _ in "12"]
    for is_weighted in (False, True):
        weights = list(sizes.values()) if is_weighted else [1, 1]
        runs = []
        for side in scores:
            whole = np.average([np.mean(side[name]) for name in sizes], weights=weights)
            results = {
                "groups": {"both": {"acc,none": whole, "acc_stderr,none": 0.1, "alias": "both"}},
                "n-samples": {name: {"original": size, "effective": size} for name, size in sizes.items()},
            }
            tasks = [rows(name, {"acc,none": side[name]}) for name in sizes]
            runs.append(run(*tasks, groups={"both": ["a", "b"]}, results=results))
        row = found(*runs)["both"].row
        assert (row.first, row.second) == pytest.approx([r.results["groups"]["both"]["acc,none"] for r in runs])
        assert row.pairing.paired == 50
    runs[0].results["groups"]["both"]["acc,none"] += 0.3
    assert found(*runs) == {}


def group_of_two(scores: list[list[float | None]], within: ScoreRange | None = SHARES) -> RunRows:
    """A run with a group of two tasks, whose documents without a score are unscored."""
    tasks = [rows(name, {"acc,none": values}, within=within) for name, values in zip("ab", scores, strict=True)]
    means = [np.mean([one for one in values if one is not None]) for values in scores]
    return run(*tasks, groups={"both": ["a", "b"]}, results={"groups": {"both": {"acc,none": float(np.mean(means))}}})


def verdicts(first: RunRows, second: RunRows, **options: Any) -> tuple[str, tuple[str, ...]]:
    named = [structs.replace(one, name=name) for one, name in ((first, "first"), (second, "second"))]
    compared = compare_runs(named, CompareOptions(draws=500, **options))
    return next((row.verdict, row.notes) for row in compared.pairs[0].rows if row.name == "both")


def test_a_group_is_better_only_if_that_holds_whatever_missing_documents_would_score():
    right = [float(number < 70) for number in range(100)]
    plain = group_of_two([[1.0] * 40 + [0.0] * 60, right])
    missing_wrong = [*right[:70], *[None] * 30]
    better = group_of_two([missing_wrong, right])
    assert verdicts(better, plain)[0] == "better"
    assert verdicts(plain, better)[0] == "worse"
    missing_right = [None if number < 40 else score for number, score in enumerate(right)]
    found = verdicts(group_of_two([missing_right, right]), plain)
    assert found[0] == "cannot tell"
    assert "depends on 40 documents without a score: better over the others" in found[1]
    endless = [group_of_two([missing_wrong, right], None), group_of_two([[1.0] * 40 + [0.0] * 60, right], None)]
    found = verdicts(*endless)
    assert found[0] == "cannot tell"
    assert any("30 documents without a score" in note and "no range with two ends" in note for note in found[1])


def test_equivalence_of_groups_and_the_gate_count_missing_documents():
    right = [float(number < 700) for number in range(1000)]
    few, many = ([None if number < count else score for number, score in enumerate(right)] for count in (5, 150))
    plain = group_of_two([right, right])
    assert verdicts(group_of_two([few, right]), plain, margin=0.05)[0] == "equivalent"
    assert verdicts(group_of_two([many, right]), plain, margin=0.05)[0] == "cannot tell"
    policy = GatePolicy.model_validate({"tasks": ["both"], "margin": 0.05, "minimum_coverage": 0.5})
    held = [check_gate(group_of_two([one, right]), plain, policy) for one in (few, many)]
    assert [one.outcome for one in held] == ["held", "cannot tell"]
    assert held[1].checks[0].reason == "depends on 150 documents without a score: held over the others"


def test_numbers_without_ends_say_that_missing_documents_are_left_out():
    from lmms_eval.metrics.table import AGGREGATIONS

    f1 = AGGREGATIONS["f1"].function()
    values = [[number % 2, int(number % 3 == 0)] for number in range(60)]
    config = {"configs": {"t": {"metric_list": [{"metric": "f1", "aggregation": "f1"}]}}}
    sides = [values, [*values[:50], *[None] * 10]]
    both = [run(rows("t", {"f1,none": one}, {"f1,none": f1(list(filter(None, one)))}), results=config) for one in sides]
    assert LEFT_OUT in found(*both)["t"].row.notes


def test_registered_aggregation_is_called_on_redrawn_documents():
    from lmms_eval.metrics.table import AGGREGATIONS

    rng = np.random.default_rng(4)
    gold = rng.integers(0, 2, 60)
    said = [np.where(rng.random(60) < share, gold, 1 - gold) for share in (0.9, 0.6)]
    values = [[[int(g), int(s)] for g, s in zip(gold, side, strict=True)] for side in said]
    f1 = AGGREGATIONS["f1"].function()
    config = {"configs": {"t": {"metric_list": [{"metric": "f1", "aggregation": "f1"}]}}}
    runs = [run(rows("t", {"f1,none": side}, {"f1,none": f1(side)}), results=config) for side in values]
    one = found(*runs)["t"]
    assert (one.row.first, one.row.second) == pytest.approx((f1(values[0]), f1(values[1])))
    assert one.row.interval.low < one.row.value < one.row.interval.high
    assert "1,000 redraws" in one.row.notes[-1]
    alone = [bootstrap_stderr("f1", side, 1000) for side in values]
    assert one.error == pytest.approx(math.hypot(*alone), rel=0.35)
    wrong = [run(rows("t", {"f1,none": side}, {"f1,none": 0.123}), results=config) for side in values]
    assert found(*wrong) == {}


def test_the_same_seed_gives_the_same_interval_and_another_run_order_the_opposite():
    rng = random.Random(5)
    sides = [[_query(f"t{n}", rng.random()) for n in range(8) for _ in range(20)] for _ in range(2)]
    runs = [run(rows("megabench_demo", {"macro_mean,none": side}, {"macro_mean,none": 0.5})) for side in sides]
    row, again = (found(*runs)["megabench_demo"].row for _ in range(2))
    assert row == again
    back = found(*runs[::-1])["megabench_demo"].row
    assert back.value == pytest.approx(-row.value)
    assert back.interval.low == pytest.approx(-row.interval.high, abs=0.01)


def test_early_stopped_runs_and_single_documents_have_no_interval():
    values = {"macro_mean,none": [_query("a", 1.0), _query("b", 0.0)]}
    other = {"macro_mean,none": [_query("a", 0.0), _query("b", 0.0)]}
    whole = {"macro_mean,none": 0.5}
    row = found(run(rows("megabench_demo", values, whole)), run(rows("megabench_demo", other, whole)))[
        "megabench_demo"
    ].row
    assert row.interval is None
    assert row.no_interval == "n = 1 in every part"
    stopped = run(rows("megabench_demo", values, whole, is_stopped=True))
    row = found(stopped, run(rows("megabench_demo", other, whole)))["megabench_demo"].row
    assert row.interval is None
    assert row.p is None
    assert "stopped early" in row.no_interval


def test_clusters_are_drawn_as_wholes():
    rng = random.Random(6)
    names = [f"c{number // 5}" for number in range(100)]
    hard = {name: rng.random() for name in names}
    sides = [[_query("t", float(hard[name] < share)) for name in names] for share in (0.8, 0.5)]
    whole = {"macro_mean,none": 0.5}

    def interval(clusters):
        tasks = [rows("megabench_demo", {"macro_mean,none": side}, whole, clusters=clusters) for side in sides]
        found_one = found(run(tasks[0]), run(tasks[1]))["megabench_demo"].row
        return found_one.interval.high - found_one.interval.low

    assert interval(names) > 1.5 * interval(None)


@pytest.mark.parametrize(("parts", "each"), [(3, 40), (12, 8), (20, 3)], ids=["mmie", "milebench", "megabench"])
def test_intervals_of_macro_means_hold_the_true_difference(parts, each):
    """Documents of parts of different difficulty, the second run worse by a different amount in each."""
    rng = np.random.default_rng(7)
    shares = rng.uniform(0.3, 0.95, parts)
    losses = rng.uniform(0.0, 0.3, parts)
    truth, draws, hits, errors = float(np.mean(losses)), 200, 0, 0
    for seed in range(draws):
        first = rng.random((parts, each)) < shares[:, None]
        second = first & (rng.random((parts, each)) >= losses[:, None] / shares[:, None])
        sides = [[_query(f"t{p}", float(s)) for p in range(parts) for s in side[p]] for side in (first, second)]
        runs = [run(rows("megabench_demo", {"macro_mean,none": side}, {"macro_mean,none": 0.5})) for side in sides]
        interval = found(*runs, Redrawing(draws=300, seed=seed))["megabench_demo"].row.interval
        hits += interval is not None and interval.low <= truth <= interval.high
        errors += interval is None
    assert errors <= 2
    assert 0.91 <= hits / draws <= 0.99  # 95 % with the simulation's own error


def test_type_one_error_of_the_permutation():
    rng, wrong = np.random.default_rng(8), 0
    for seed in range(150):
        hard = rng.random((10, 6))
        sides = [[_query(f"t{p}", float(rng.random() > hard[p, i])) for p in range(10) for i in range(6)] for _ in "12"]
        runs = [run(rows("megabench_demo", {"macro_mean,none": side}, {"macro_mean,none": 0.5})) for side in sides]
        wrong += found(*runs, Redrawing(draws=400, seed=seed))["megabench_demo"].row.p <= 0.05
    assert wrong / 150 <= 0.1


def test_number_that_is_no_weighted_mean_of_its_parts_is_refused():
    from lmms_eval.compare.strata import MeanPart, weights_of

    parts = {name: MeanPart.of([(1.0, 0.5), (0.25, 0.0)]) for name in "ab"}
    assert weights_of(parts, lambda v: {"n": 0.25 * v["a"] + 0.75 * v["b"]}) == {"n": {"a": 0.25, "b": 0.75}}
    with pytest.raises(LmmsEvalError, match="not a weighted mean"):
        weights_of(parts, lambda v: {"n": v["a"] * v["b"] + v["a"]})


def is_json(found_one: HeadlineFinding) -> None:
    row = found_one.row
    json.dumps([row.first, row.second, row.value, row.p], allow_nan=False)


def test_json_of_a_difference_holds_no_nan(demos):
    first, second = demos
    for one in find_headlines(first, second, _pairs(first, second), Redrawing(draws=200, own_draws=100)):
        is_json(one)


def test_json_of_a_difference_without_an_interval_or_score_holds_no_nan():
    rng = random.Random(9)
    whole = {"macro_mean,none": 0.5}
    same = {"macro_mean,none": [_query(name, 1.0) for name in "ab"]}
    other = {"macro_mean,none": [_query("a", 0.0), _query("b", 0.0)]}
    draws = Redrawing(draws=200, own_draws=100)
    for facts in ({}, {"is_stopped": True}):
        for values in (same, other):
            sides = [run(rows("megabench_demo", side, whole, **facts)) for side in (same, values)]
            assert [is_json(one) for one in found(*sides, draws).values()]
    judged = [[_sample("SA", None if number < 3 else rng.randrange(7)) for number in range(12)] for _ in range(2)]
    sides = [run(rows("mmie", {"judged,none": samples})) for samples in judged]
    assert [is_json(one) for one in found(*sides, draws).values()]
