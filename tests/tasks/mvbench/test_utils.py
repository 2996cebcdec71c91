"""MVBench: letters in answers, videos of the sub-tasks' folders, the group's mean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import ItemError
from lmms_eval.evaluator import simple_evaluate
from lmms_eval.tasks.mvbench.utils import aggregate, doc_to_visual, letter, process_results
from lmms_eval.utils.files import rows_of, state_of
from tests.cases import for_each

DOC = {"video": "v.mp4", "question": "What?", "candidates": ["x", "y", "z"], "answer": "y"}
TABLE = Path(__file__).parents[3] / "lmms_eval" / "tasks" / "mvbench" / "subtasks.tsv"


@for_each(
    ("answer", "read"),
    [("b. y", "B"), ("(B)", "B"), ("a dog", "A"), ("Best option: (c) z", "C"), ("", ""), ("F", "f"), ("是B", "是b"),
     ("I would not say.", "i would not say"), ("<think>b", "B")],
)  # fmt: skip
def test_letters(answer: str, read: str) -> None:
    assert letter(answer) == read


def test_an_answer_of_any_length_is_read() -> None:
    assert process_results(DOC, ["x" * 100_000])["mvbench_accuracy"]["score"] == 0


def test_empty_answers_count_and_a_reference_outside_of_the_candidates_fails() -> None:
    scored = [process_results(DOC, [answer])["mvbench_accuracy"] for answer in ("", "B")]
    assert aggregate(scored).value == 50
    assert aggregate([]).value is None
    with pytest.raises(ItemError, match="column 'answer' holds 'w'"):
        process_results({**DOC, "answer": "w"}, ["A"])


def test_some_folders_may_lie_below_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    settings = {"sub_task": "moving_count", "folder": "clevrer/video_validation"}
    place = tmp_path / "mvbench_video" / "data0613" / "clevrer" / "video_validation" / "v.mp4"
    assert doc_to_visual(DOC, settings) == [str(tmp_path / "mvbench_video" / settings["folder"] / "v.mp4")]
    place.parent.mkdir(parents=True)
    place.touch()
    assert doc_to_visual(DOC, settings) == [str(place)]


def test_the_group_is_the_mean_of_its_tasks(tmp_path: Path) -> None:
    names = [row["sub_task"] for row in rows_of(TABLE, state_of(TABLE))]
    for number, name in enumerate(names):
        folder = tmp_path / "MVBench" / name
        folder.mkdir(parents=True)
        docs: list[dict[str, Any]] = [{**DOC, "answer": "x" if number < 5 else "y"}] * (1 + number)
        (folder / "train.jsonl").write_text("".join(f"{json.dumps(doc)}\n" for doc in docs), "utf-8")
    made = simple_evaluate(
        model="baseline", model_args="strategy=constant,text=A", tasks=["mvbench"], data_root=str(tmp_path)
    )
    assert len(names) == 20
    assert made["results"]["mvbench"]["mvbench_accuracy,none"] == 25
