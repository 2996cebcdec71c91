from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import pytest

from lmms_eval.api.task import Sample
from lmms_eval.engine import plan as plan_module
from lmms_eval.engine.plan import dealt_units, drawn, ordered, plan_task, run_key, units
from lmms_eval.errors import UsageError
from tests.cases import for_each
from tests.engine.fakes import FakeTask


@for_each(
    ("limit", "offset", "documents"),
    [
        (None, 0, range(10)),
        (-1, 0, range(10)),
        (3, 0, range(3)),
        (3, 8, range(8, 10)),
        (99, 0, range(10)),
        (0.25, 0, range(3)),
        (0.25, 5, range(5, 8)),
        (None, 9, range(9, 10)),
    ],
)
def test_limit_and_offset(limit: float | None, offset: int, documents: range) -> None:
    made = plan_task(FakeTask(10), limit, offset)
    assert made.doc_ids == documents
    assert (made.requested, made.original) == (len(documents), 10)


def test_an_offset_beyond_the_end_is_refused() -> None:
    with pytest.raises(UsageError, match="--offset 10: task 'fake' has only 10 documents"):
        plan_task(FakeTask(10), None, 10)


class Costly(FakeTask):
    """The cost of a document is its number modulo 4; the requested documents are recorded."""

    def costs(self, doc_ids: Sequence[int]) -> Sequence[float]:
        self.asked = [*getattr(self, "asked", []), list(doc_ids)]
        return [doc_id % 4 for doc_id in doc_ids]


def test_costliest_first_within_a_window_and_lazily(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "COST_WINDOW", 8)
    task = Costly(16)
    stream = units(ordered([plan_task(task, None, 0)]), {})
    first = [next(stream).doc_id for _ in range(8)]
    assert first == [3, 7, 2, 6, 1, 5, 0, 4]
    assert task.asked == [list(range(8))]
    assert [unit.doc_id for unit in stream] == [11, 15, 10, 14, 9, 13, 8, 12]


def test_finished_documents_are_left_out_and_repeats_stand_in_the_unit() -> None:
    one, other = FakeTask(4, "one", repeats=3), FakeTask(2, "other")
    made = list(units(ordered([plan_task(one, None, 1), plan_task(other, None, 0)]), {"one": {2}, "other": {0, 1}}))
    assert [(unit.task.name, unit.doc_id, unit.repeats) for unit in made] == [("one", 1, 3), ("one", 3, 3)]


def test_the_run_key_depends_on_content_not_on_order() -> None:
    parts = {"options": {"limit": 3, "seed": (0, 1)}, "model": {"name": "a"}}
    key = run_key(parts)
    assert key == run_key({"model": {"name": "a"}, "options": {"seed": (0, 1), "limit": 3}})
    assert len(key) == 16 and int(key, 16) >= 0
    others = [
        run_key({**parts, "model": {"name": "b"}}),
        run_key({**parts, "options": {"limit": 4, "seed": (0, 1)}}),
        run_key({**parts, "options": {"limit": 3, "seed": (1, 0)}}),
        run_key({**parts, "more": None}),
    ]
    assert len({key, *others}) == 5


def test_the_run_key_is_the_same_in_every_process() -> None:
    """Sets have a different order, and objects a different address, in each process."""
    code = (
        "from lmms_eval.engine.plan import run_key\n"
        "class Plain: pass\n"
        "filler = [Plain() for _ in range({n})]\n"
        "print(run_key({{'set': {{'alpha', 'beta', 'gamma', 'delta'}}, 'object': Plain(), 1: 2}}))\n"
    )
    keys = {
        subprocess.run(
            [sys.executable, "-c", code.format(n=seed * 100)], env={"PYTHONHASHSEED": str(seed)},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in (1, 2, 3)
    }  # fmt: skip
    assert len(keys) == 1


def test_what_is_left_is_dealt_out_in_turn() -> None:
    plans, done = [plan_task(FakeTask(11), None, 0)], {"fake": {0, 4}}
    dealt = [[unit.doc_id for unit in dealt_units(ordered(plans), done, (rank, 3))] for rank in range(3)]
    assert sorted(number for own in dealt for number in own) == [1, 2, 3, 5, 6, 7, 8, 9, 10]
    assert [len(own) for own in dealt] == [3, 3, 3]


def test_a_sample_is_the_same_everywhere_and_a_larger_one_holds_it() -> None:
    some = drawn(Sample(5, 1), 1000)
    assert some == [661, 691, 819, 932, 989]
    assert set(some) < set(drawn(Sample(9, 1), 1000))
    assert some != drawn(Sample(5, 2), 1000)
    assert drawn(Sample(5, 1), 3) == [0, 1, 2]


def test_limit_and_offset_count_among_the_documents_drawn() -> None:
    task = FakeTask(1000)
    task.sample = Sample(5, 1)
    made = plan_task(task, 2, 1)
    assert (made.doc_ids, made.requested, made.original) == (drawn(Sample(5, 1), 1000)[1:3], 2, 1000)
    assert [unit.doc_id for unit in units(ordered([plan_task(task, None, 0)]), {})] == drawn(Sample(5, 1), 1000)
    with pytest.raises(UsageError, match="has only 5 documents"):
        plan_task(task, None, 5)
