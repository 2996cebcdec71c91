from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lmms_eval.engine import plan as plan_module
from lmms_eval.engine.plan import TaskPlan, dealt_units, ordered, plan_task, shared_units
from lmms_eval.engine.share import Share
from lmms_eval.errors import UsageError
from lmms_eval.media.keeper import KeepLimits, MediaKeeper
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


def test_kept_media_of_another_folder_arrive_with_the_records(tmp_path: Path) -> None:
    limits = KeepLimits(10**6, 10**6)
    first, second = (MediaKeeper(tmp_path / f"{n}" / "media", tmp_path / f"{n}", limits, n) for n in range(2))
    teams = team_of(2)
    here, there = Share(teams[0], True, first), Share(teams[1], False, second)
    kept = [second.keep(number, lambda number=number: bytes([number]) * 9).file for number in range(3)]
    records = [
        {"answers": [{"media": [{"type": "image", "stored": [name]}]}, {"media": [{"type": "image"}]}]} for name in kept
    ]
    sent: set[str] = set()
    sent |= there._send_media(records[:2], sent)
    assert there._send_media(records, sent) == {kept[2]}
    for name in kept:
        here.keeper.receive(name, teams[0].receive_bytes(f"kept/1/{name}", 1))
    here.keeper.receive("media/../../outside.png", b"x")
    assert [first.read(name) for name in kept] == [bytes([number]) * 9 for number in range(3)]
    assert first.stated()["files"] == 3 and not list(tmp_path.rglob("outside*"))
