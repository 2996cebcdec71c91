from __future__ import annotations

import numpy as np
from msgspec import structs

from lmms_eval.compare.comparing import rank_runs
from lmms_eval.results.facts import EarlyStop
from lmms_eval.utils.numbers import ScoreRange
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


def test_ranks_hold_whatever_documents_without_a_score_would_score():
    """A run that fails on a third of its wrong answers is not ahead of an equal one."""
    generator = np.random.default_rng(3)
    right = generator.random((3, 600)) < np.array([[0.7], [0.7], [0.3]])
    scores = right.astype(float)
    scores[0][(~right[0]) & (generator.random(600) < 0.6)] = np.nan
    statuses = ["failed" if np.isnan(score) else "scored" for score in scores[0]]
    made = []
    for name, numbers in zip(("fails", "equal", "low"), scores, strict=True):
        facts = {"statuses": statuses} if name == "fails" else {}
        one = run(rows("quiz", {"acc,none": numbers.tolist()}, **facts))
        task = one.tasks["quiz"]
        column = structs.replace(task.columns["acc,none"], score_range=ScoreRange(0, 1))
        made.append(
            structs.replace(one, name=name, tasks={"quiz": structs.replace(task, columns={"acc,none": column})})
        )
    ranks, notes = rank_runs(made, draws=500)
    found = {one.run: (one.rank, one.best, one.worst) for one in ranks["quiz acc,none"]}
    assert found == {"fails": (1, 1, 2), "equal": (2, 1, 2), "low": (3, 3, 3)}
    lacking = sum(np.isnan(scores[0]))
    assert notes == [f"quiz acc,none: {lacking} documents lack a score in a run: ranks hold whatever they would score"]
    endless = [
        structs.replace(
            one,
            tasks={
                "quiz": structs.replace(
                    task := one.tasks["quiz"],
                    columns={
                        "acc,none": structs.replace(
                            task.columns["acc,none"],
                            score_range=ScoreRange(0, np.inf),
                            scores=2 * task.columns["acc,none"].scores,
                        )
                    },
                )
            },
        )
        for one in made
    ]
    ranks, notes = rank_runs(endless, draws=500)
    assert {(one.best, one.worst) for one in ranks["quiz acc,none"]} == {(1, 3)}
    assert "not bounded, without a range" in notes[0]


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


def test_few_graded_scores_show_no_rank_that_their_intervals_do_not_show():
    """Three scores that are nearly equal have a tiny standard error, and yet say little."""
    near = {"a": [0.26, 0.27, 0.26], "b": [0.0, 0.0, 0.0], "c": [0.01, 0.0, 0.0]}
    within = ScoreRange(0.0, 1.0)
    runs = [structs.replace(run(rows("quiz", {"f,none": one}, within=within)), name=name) for name, one in near.items()]
    assert {(one.best, one.worst) for one in rank_runs(runs, draws=500)[0]["quiz f,none"]} == {(1, 3)}
    far = {name: one * 12 for name, one in {"a": [0.9, 0.8, 0.9], "b": [0.1, 0.0, 0.0], "c": [0.01, 0.0, 0.1]}.items()}
    runs = [structs.replace(run(rows("quiz", {"f,none": one}, within=within)), name=name) for name, one in far.items()]
    found = {one.run: (one.best, one.worst) for one in rank_runs(runs, draws=500)[0]["quiz f,none"]}
    assert found == {"a": (1, 1), "b": (2, 3), "c": (2, 3)}
