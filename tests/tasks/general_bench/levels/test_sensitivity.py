import pytest

from lmms_eval.errors import UsageError
from lmms_eval.stats import NoInterval
from lmms_eval.tasks.general_bench.facts import LANGUAGE, sheets, tasks
from lmms_eval.tasks.general_bench.levels.paper import rank_paper
from lmms_eval.tasks.general_bench.levels.reference import rank_reference
from lmms_eval.tasks.general_bench.levels.sensitivity import sensitivity
from tests.cases import for_each
from tests.tasks.general_bench.levels.kit import specialists_scores, table_of


def test_intervals_repeat_and_hold_the_level():
    ranked = rank_paper("m", table_of(specialists_scores()))
    found = sensitivity(ranked, draws=200)
    assert found == sensitivity(ranked, draws=200)
    assert found != sensitivity(ranked, draws=200, seed=1)
    for level, score in ranked.levels.items():
        assert found[level].interval.low < score < found[level].interval.high
        assert found[level].if_at_specialist == score
        assert (found[level].missing_rows, found[level].wins_needed) == (0, 0)
        assert set(found[level].modalities) == (set() if level == 5 else set(ranked.modalities))
        for name, interval in found[level].modalities.items():
            assert interval.low < ranked.modalities[name].levels[level] < interval.high


def test_equal_scores_leave_no_doubt():
    scores = {task.name: 100.0 for task in tasks() if task.sheet in ("Video-Comprehension", LANGUAGE)}
    scores = {name: score for name, score in scores.items() if name not in lower_is_better()}
    ranked = rank_paper("m", table_of(scores))
    assert ranked.levels[4] == 0
    assert sensitivity(ranked, draws=20)[4].interval == NoInterval("0 in every draw")


def lower_is_better():
    return {task.name for task in tasks() if task.metric in ("rmse", "epe", "abs_rel")}


def test_missing_rows_that_hold_levels_down():
    ranked = rank_paper("m", table_of({}))
    found = sensitivity(ranked, draws=0)
    assert {level: one.wins_needed for level, one in found.items()} == {2: 1, 3: 1, 4: 2, 5: 3}
    assert {level: one.missing_rows for level, one in found.items()} == {2: 584, 3: 584, 4: 584, 5: 699}
    assert found[2].if_at_specialist == pytest.approx(rank_paper("m", table_of(specialists_scores())).levels[2])
    assert found[2].interval == NoInterval("no draws")


def test_levels_that_no_missing_row_can_lift():
    lost = {task.name: 0.001 for task in tasks() if task.metric not in ("mos", "wer") and task.sheet != LANGUAGE}
    lost = {task.name: 99999.0 if task.name in worse() else lost[task.name] for task in tasks() if task.name in lost}
    ranked = rank_paper("m", table_of(lost))
    assert not ranked.problems
    found = sensitivity(ranked, draws=0)
    assert (ranked.levels[4], found[4].wins_needed) == (0, None)


def worse():
    from lmms_eval.tasks.general_bench.facts import metrics

    return {task.name for rows in sheets().values() for task in rows if not metrics()[task.metric].higher_is_better}


def test_the_reference_profile_has_its_epsilon():
    ranked = rank_reference("m", table_of({task.name: task.specialist for task in tasks()}))
    found = sensitivity(ranked, draws=0)
    assert found[4].if_at_specialist == pytest.approx(ranked.levels[4], rel=1e-12)


@for_each("arguments", [{"draws": 1}, {"draws": -1}, {"level": 1.0}])
def test_bad_numbers_are_refused(arguments):
    with pytest.raises(UsageError, match="sensitivity"):
        sensitivity(rank_paper("m", table_of({})), **arguments)
