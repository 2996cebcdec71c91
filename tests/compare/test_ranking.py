from __future__ import annotations

import numpy as np
from msgspec import structs

from lmms_eval.compare.comparing import rank_runs
from lmms_eval.results.facts import EarlyStop
from tests.compare.headline_runs import rows, run

_RNG = np.random.default_rng(1)
_HARD = _RNG.random(400)


def _run(name: str, ability: float, **facts):
    scores = [float(one) for one in np.random.default_rng(len(name)).random(400) * _HARD < ability]
    return structs.replace(run(rows("quiz", {"acc,none": scores}, **facts)), name=name)


def test_runs_that_are_far_apart_have_one_rank_and_alike_ones_share():
    ranks, _ = rank_runs([_run("low", 0.1), _run("high", 0.6), _run("same high", 0.6)], draws=2000)
    by_run = {rank.run: rank for rank in ranks["quiz acc,none"]}
    assert (by_run["low"].best, by_run["low"].rank, by_run["low"].worst) == (3, 3, 3)
    assert {(one.best, one.worst) for name, one in by_run.items() if name != "low"} == {(1, 2)}
    assert [one.rank for one in ranks["quiz acc,none"]] == sorted(one.rank for one in by_run.values())


def test_only_documents_that_all_runs_have_scored_count():
    runs = [_run("a", 0.2), _run("bb", 0.5), _run("ccc", 0.6)]
    task = runs[0].tasks["quiz"]
    scores = task.columns["acc,none"].scores.copy()
    scores[:100] = np.nan
    column = structs.replace(task.columns["acc,none"], scores=scores)
    runs[0] = structs.replace(runs[0], tasks={"quiz": structs.replace(task, columns={"acc,none": column})})
    found = {one.run: one for one in rank_runs(runs, draws=500)[0]["quiz acc,none"]}
    assert found["bb"].score == runs[1].tasks["quiz"].columns["acc,none"].scores[100:].mean()


def test_less_is_better_where_the_metric_says_so():
    runs = [_run("a", 0.1), _run("bb", 0.5), _run("ccc", 0.9)]
    turned = []
    for one in runs:
        task = one.tasks["quiz"]
        column = structs.replace(task.columns["acc,none"], higher_is_better=False)
        turned.append(structs.replace(one, tasks={"quiz": structs.replace(task, columns={"acc,none": column})}))
    found = rank_runs(turned, draws=500)[0]["quiz acc,none"]
    assert [one.run for one in found] == ["a", "bb", "ccc"]
    assert found[0].score < found[1].score


def test_runs_that_stopped_early_are_left_out_and_said():
    runs = [_run(name, 0.5) for name in ("a", "bb", "ccc", "dddd")]
    task = runs[0].tasks["quiz"]
    runs[0] = structs.replace(runs[0], tasks={"quiz": structs.replace(task, early_stop=EarlyStop(5, 10, "o", "r"))})
    ranks, notes = rank_runs(runs, draws=500)
    assert {one.run for one in ranks["quiz acc,none"]} == {"bb", "ccc", "dddd"}
    assert "a stopped early" in notes[0]
    assert rank_runs(runs[:3], draws=500)[0] == {}
