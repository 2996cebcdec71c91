from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.engine.headline import RandomOrder, interleaved, place_in
from lmms_eval.engine.plan import plan_task
from tests.cases import for_each
from tests.engine.fakes import FakeTask


def test_every_document_once_in_an_order_that_the_seed_fixes() -> None:
    plan = plan_task(FakeTask(200), None, 0)
    order = RandomOrder(7).of(plan)
    assert sorted(order) == list(range(200)) != order
    assert order == RandomOrder(7).of(plan) != RandomOrder(8).of(plan)
    assert RandomOrder(7).of(plan_task(FakeTask(200, "other"), None, 0)) != order


def test_every_process_has_the_same_order() -> None:
    code = (
        "from lmms_eval.engine.headline import RandomOrder\n"
        "from lmms_eval.engine.plan import plan_task\n"
        "from tests.engine.fakes import FakeTask\n"
        "print(RandomOrder(3).of(plan_task(FakeTask(50), None, 0)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == str(RandomOrder(3).of(plan_task(FakeTask(50), None, 0)))


def test_the_limited_list_is_put_in_order() -> None:
    whole, limited = plan_task(FakeTask(100), None, 0), plan_task(FakeTask(100), 20, 10)
    order = RandomOrder(1)
    assert order.of(limited) == [doc_id for doc_id in order.of(whole) if 10 <= doc_id < 30]
    assert order.name(whole) != order.name(limited)
    assert order.name(whole) == order.name(plan_task(FakeTask(100), -1, 0))


@given(st.dictionaries(st.sampled_from("abcde"), st.integers(1, 60), min_size=1), st.integers(1, 200))
def test_strata_grow_together_in_proportion(sizes: dict[str, int], taken: int) -> None:
    orders = {name: range(size) for name, size in sizes.items()}
    merged = list(interleaved(orders))
    assert Counter(merged) == Counter((name, number) for name in orders for number in orders[name])
    seen = Counter(name for name, _ in islice(merged, taken))
    share = min(taken, len(merged)) / len(merged)
    assert all(abs(seen[name] - share * size) <= len(sizes) for name, size in sizes.items())


def test_other_tasks_do_not_change_the_order_of_a_group() -> None:
    one, other, third = (plan_task(FakeTask(size, name), None, 0) for name, size in (("a", 9), ("b", 30), ("c", 17)))
    order = RandomOrder(0)
    together = [(unit.task.name, unit.doc_id) for unit in order.units([one, other, third])]
    alone = [(unit.task.name, unit.doc_id) for unit in order.units([third, one])]
    assert alone == [each for each in together if each[0] != "b"]


def test_the_place_of_a_document_is_found_again_by_the_order_of_that_name() -> None:
    plan = plan_task(FakeTask(30), None, 0)
    order = RandomOrder(7)
    ids = sorted(map(str, plan.doc_ids), key=lambda doc_id: place_in(order.name(plan), plan.task.name, doc_id))
    assert [int(doc_id) for doc_id in ids] == order.of(plan)


class _Divided(FakeTask):
    def strata(self, doc_ids: Sequence[int]) -> list[str]:
        return ["few" if doc_id % 10 == 0 else "many" for doc_id in doc_ids]


def test_strata_of_a_task_keep_pace_each_in_random_order() -> None:
    plan = plan_task(_Divided(200), None, 0)
    order = RandomOrder(7)
    found = order.of(plan)
    assert sorted(found) == list(range(200))
    few = [place for place, doc_id in enumerate(found) if doc_id % 10 == 0]
    assert all(abs(place - 10 * number - 5) <= 1 for number, place in enumerate(few))
    at_random = order.of(plan_task(FakeTask(200), None, 0))
    assert [one for one in found if one % 10] == [one for one in at_random if one % 10]
    assert order.name(plan) != order.name(plan_task(FakeTask(200), None, 0))
    with pytest.raises(ValueError, match="no random order"):
        place_in(order.name(plan), "fake", "1")


@for_each(("name", "doc_id"), [("cost", "1"), ("random:x:y", "1"), ("random:0:y", "a"), ("", "1")])
def test_names_of_no_random_order_have_no_places(name: str, doc_id: str) -> None:
    with pytest.raises(ValueError):
        place_in(name, "quiz", doc_id)
