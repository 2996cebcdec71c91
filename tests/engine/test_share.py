from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from lmms_eval.engine import plan as plan_module
from lmms_eval.engine.plan import TaskPlan, dealt_units, ordered, plan_task, shared_units
from lmms_eval.engine.share import Share
from lmms_eval.errors import UsageError
from tests.cases import for_each
from tests.engine.fakes import FakeTask
from tests.engine.test_team import team_of


class SeenOtherwise(FakeTask):
    """A task whose files look different on every machine, so that the estimates differ."""

    def __init__(self, documents: int, machine: int) -> None:
        super().__init__(documents)
        self.machine = machine

    def costs(self, doc_ids: Sequence[int]) -> Sequence[float]:
        return [float((doc_id * (7 + self.machine)) % 11) for doc_id in doc_ids]


class Broken(FakeTask):
    def costs(self, doc_ids: Sequence[int]) -> Sequence[float]:
        raise ValueError("no such column")


def plans_of(machine: int) -> list[TaskPlan]:
    return [plan_task(SeenOtherwise(40, machine), None, 0)]


@for_each("in_lockstep", [False, True])
def test_every_document_is_taken_once_where_estimates_differ(
    monkeypatch: pytest.MonkeyPatch, in_lockstep: bool
) -> None:
    monkeypatch.setattr(plan_module, "COST_WINDOW", 16)
    teams = team_of(3)

    def take(rank: int) -> list[int]:
        plans = plans_of(rank)
        order = Share(teams[rank], shared_files=False).common_order(plans)
        if in_lockstep:
            return [unit.doc_id for unit in dealt_units(ordered(plans, order), {}, (rank, 3))]
        return [unit.doc_id for unit in shared_units(ordered(plans, order), 40, {}, teams[rank].next_block)]

    with ThreadPoolExecutor(3) as pool:
        taken = list(pool.map(take, range(3)))
    assert sorted(doc_id for part in taken for doc_id in part) == list(range(40))


def test_an_estimate_that_raises_is_told_to_all() -> None:
    plans = [plan_task(Broken(3, "broken"), None, 0)]
    for team in team_of(2):
        order = Share(team, shared_files=False).common_order(plans)
        with pytest.raises(UsageError, match="task 'broken': ValueError: no such column"):
            list(shared_units(ordered(plans, order), 3, {}, team.next_block))
