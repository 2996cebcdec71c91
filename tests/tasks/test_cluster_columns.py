"""Columns that name the videos of tasks, with the columns of their data as their publishers describe them."""

from __future__ import annotations

from typing import Any

from lmms_eval.api.task import TaskOptions
from lmms_eval.engine.clusters import ClusterFinder
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.longvideobench import utils as longvideobench
from lmms_eval.tasks.mvbench import utils as mvbench
from lmms_eval.tasks.nextqa import utils as nextqa
from lmms_eval.tasks.selection import select_tasks
from tests.cases import for_each

MVBENCH = {"video": "v1.mp4", "question": "What?", "candidates": ["a dog", "a cat"], "answer": "a cat"}
NEXTQA = {
    "video": 4010069381, "frame_count": 369, "width": 640, "height": 480, "question": "how", "answer": 3, "qid": 6,
    "type": "CH", **{f"a{number}": f"option {number}" for number in range(5)},
}  # fmt: skip
LONG = {
    "video_id": "86CxyhFV9MI", "video_path": "86CxyhFV9MI.mp4", "id": "86CxyhFV9MI_0", "question": "What?",
    **{f"option{number}": "N/A" if number == 4 else f"option {number}" for number in range(5)}, "correct_choice": 1,
    "duration_group": 600, "question_category": "T2E",
}  # fmt: skip


@for_each(
    ("task", "module", "doc"),
    [
        ("mvbench_action_antonym", mvbench, MVBENCH),
        ("nextqa_mc_test", nextqa, NEXTQA),
        ("longvideobench_val_v", longvideobench, LONG),
    ],
)
def test_questions_about_one_video_are_a_cluster(task: str, module: Any, doc: dict[str, Any]) -> None:
    (chosen,) = select_tasks((task,), Catalogue(), TaskOptions()).tasks
    key = chosen.cluster_key
    assert key is not None
    finder = ClusterFinder(key, own_only=False)
    for number in range(3):
        own = {**doc, "id": f"{number}", "qid": number, key: doc[key] if number < 2 else "another"}
        finder.note(number, [*module.process_results(own, ["B"]).values(), own], [{"sha256": f"{number}"}], ())
    found = finder.clusters()
    assert (found.by, found.count, found.absent_key) == (f"column {key}", 2, "")
