"""A viewer computes from the outline of a run the same numbers as the run itself."""

from __future__ import annotations

from pathlib import Path

from lmms_eval.engine.headline import Anchors, HeadlinePart, RandomOrder
from lmms_eval.engine.live import OF_A_CONTROL, OUTLINE, outline_of, read_outline, write_outline
from lmms_eval.engine.looks import Sampling
from lmms_eval.engine.plan import plan_task
from lmms_eval.utils.numbers import ScoreRange
from tests.engine.fakes import FakeTask


def test_order_and_parts_are_read_as_they_were_written(tmp_path: Path) -> None:
    plans = [plan_task(FakeTask(30, "one"), None, 0), plan_task(FakeTask(9, "two"), 5, 1)]
    strata = {doc_id: "odd" if doc_id % 2 else "even" for doc_id in plans[0].doc_ids}
    part = HeadlinePart(
        "one", "acc", "none", ScoreRange(0, 2), weight=3.0, is_binary=True, strata=strata, is_macro=True
    )
    outline = outline_of(plans, Sampling(RandomOrder(4), shown=(part,)), {"one": part})
    write_outline(tmp_path, outline)
    found = read_outline(tmp_path)
    assert found.whole == (part,)
    assert found.tasks["one"].part == part
    assert found.tasks["one"].order == RandomOrder(4).of(plans[0])
    assert (found.tasks["two"].requested, found.tasks["two"].part, found.tasks["two"].reason) == (5, None, OF_A_CONTROL)


def test_anchors_are_read_as_they_were_written(tmp_path: Path) -> None:
    plan = plan_task(FakeTask(9, "two"), 5, 1)
    anchors = Anchors(("earlier",), {doc_id: doc_id / 7 for doc_id in plan.doc_ids}, 4)
    part = HeadlinePart("two", "acc", "none", ScoreRange(0, 2), anchors=anchors)
    write_outline(tmp_path, outline_of([plan], Sampling(RandomOrder(4), shown=(part,)), {"two": part}))
    found = read_outline(tmp_path)
    assert found.whole == (part,) and found.tasks["two"].part == part


def test_without_a_random_order_there_is_a_reason(tmp_path: Path) -> None:
    write_outline(tmp_path, outline_of([plan_task(FakeTask(30), None, 0)], None, {}))
    (task,) = read_outline(tmp_path).tasks.values()
    assert (task.requested, task.part) == (30, None)
    assert "--order random" in task.reason


def test_a_damaged_outline_is_none(tmp_path: Path) -> None:
    assert not read_outline(tmp_path).tasks
    write_outline(tmp_path, outline_of([plan_task(FakeTask(30), None, 0)], None, {}))
    file = tmp_path / OUTLINE
    file.write_bytes(file.read_bytes().replace(b"30", b"31"))
    assert not read_outline(tmp_path).tasks
