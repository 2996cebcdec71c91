from __future__ import annotations

from lmms_eval.results.controls import Chance, Controls, Gap, TaskControls
from lmms_eval.results.tables import control_lines
from lmms_eval.stats import Interval


def gaps(*ps: float | None) -> dict[str, dict[str, Gap]]:
    return {"no-media": {f"m{n},none": Gap(0.5, 0.7, 0.2, Interval(0.1, 0.3, "t"), p, 50) for n, p in enumerate(ps)}}


def test_gaps_of_all_tasks_are_corrected_together() -> None:
    tasks = {name: TaskControls(Chance(None, None), gaps(p, None)) for name, p in (("a", 0.03), ("b", 0.04))}
    assert control_lines(Controls(tasks)) == [
        "Gap_P is of each row alone; corrected over all 2 rows (Holm), 0 gaps differ from 0 at 0.05"
    ]
    tasks["b"] = TaskControls(Chance(None, None), gaps(0.001))
    assert control_lines(Controls(tasks))[-1].endswith("(Holm), 2 gaps differ from 0 at 0.05")
    assert control_lines(Controls({"a": tasks["a"]})) == []
