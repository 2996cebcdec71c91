"""The YAML files, through the loader that users run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lmms_eval.api.task import Answer, Task, TaskOptions
from lmms_eval.errors import TaskError
from lmms_eval.tasks import Catalogue, select_tasks
from lmms_eval.tasks.megabench import utils
from lmms_eval.tasks.selection import build_from_spec

DEMO = Path(utils.__file__).parent / "demo"
GENERATION = {
    "max_new_tokens": 2048, "temperature": 0.0, "do_sample": False, "top_p": 1.0, "num_beams": 1, "until": [],
}  # fmt: skip


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return Catalogue()


def task(catalogue: Catalogue, name: str, **options: Any) -> Task:
    (made,) = select_tasks([name], catalogue, TaskOptions(**options)).tasks
    made.load()
    return made


def test_the_group_holds_the_four_tasks_in_order(catalogue: Catalogue) -> None:
    selection = select_tasks(["megabench"], catalogue, TaskOptions())
    names = ["megabench_core", "megabench_open", "megabench_core_si", "megabench_open_si"]
    assert [made.name for made in selection.tasks] == names
    assert selection.groups[0].children == tuple(names)
    configurations = [made.describe()["dataset_name"] for made in selection.tasks]
    assert configurations == ["core", "open", "core_single_image", "open_single_image"]
    for made in selection.tasks:
        settings = made.describe()
        assert settings["generation_kwargs"] == GENERATION
        assert settings["dataset_path"] == "TIGER-Lab/MEGA-Bench" and settings["test_split"] == "test"
        assert [metric.name for metric in made.metrics] == ["submission", "macro_mean", "scored"]
        assert made.scoring == "process" and made.num_fewshot == 0
        assert "utils.aggregate_submission>" in str(settings["metric_list"])


def test_the_demonstration_runs_from_documents_to_scores(catalogue: Catalogue, tmp_path: Path) -> None:
    demo = task(catalogue, "megabench_demo")
    collected: dict[str, list[Any]] = {"submission": [], "macro_mean": [], "scored": []}
    for number in range(len(demo)):
        (request,) = demo.exchange(number, 0).open()
        messages = request.build_messages()
        assert messages.messages[0].content[-1].type == "text"
        assert request.generation["max_new_tokens"] == 2048
        scored = demo.score(number, [Answer(demo.gold_answer(number))])  # type: ignore[attr-defined]
        assert scored.scores[0].status == "scored"
        for name, values in collected.items():
            values.append(scored.scores[0].metrics[name])
    found = {metric.name: metric.aggregation for metric in demo.metrics}
    estimate = found["macro_mean"](collected["macro_mean"])
    assert estimate.value == pytest.approx(1.0)
    assert estimate.stderr == 0.0 and 0.9 < estimate.low < estimate.high == 1.0
    assert len(estimate.details["megabench"]["tasks"]) == 26
    assert found["scored"](collected["scored"]) == len(demo)
    found["submission"](collected["submission"], args=SimpleNamespace(output_path=str(tmp_path)), task=demo)
    assert (tmp_path / "submissions" / "megabench_demo_all_query_responses.json").stat().st_size > 1000


def test_local_data_serve_the_official_task(catalogue: Catalogue) -> None:
    core = task(catalogue, "megabench_core", data_root=str(DEMO))
    demo = task(catalogue, "megabench_demo")
    assert len(core) == len(demo)
    for number in (0, len(core) - 1):
        mine, theirs = (made.exchange(number, 0).open()[0].build_messages() for made in (core, demo))
        assert mine.text() == theirs.text()
        assert len(mine.extract_media()[0]) == len(theirs.extract_media()[0])
    assert core.target(0) == "{'count': '2'}"  # type: ignore[attr-defined]


def test_a_misspelt_option_is_refused_before_anything_is_asked(catalogue: Catalogue) -> None:
    with pytest.raises(TaskError, match="MEGA-Bench has no task option 'interleav'"):
        select_tasks(["megabench_demo"], catalogue, TaskOptions(task_kwargs={"interleav": True}))
    with pytest.raises(TaskError, match="max_images must be a whole number from 1 on, not 0"):
        select_tasks(["megabench_core"], catalogue, TaskOptions(task_kwargs={"max_images": 0}))


def test_a_scoring_process_builds_the_same_task(catalogue: Catalogue) -> None:
    demo = task(catalogue, "megabench_demo")
    again = build_from_spec(demo.spec())
    again.load()
    answer = Answer("Answer: 2")
    assert again.score(0, [answer]).scores == demo.score(0, [answer]).scores


def test_a_wrong_answer_and_no_answer_are_scored_as_such(catalogue: Catalogue) -> None:
    demo = task(catalogue, "megabench_demo")
    for reply in ("Answer: 17", "", "no idea"):
        outcome = demo.score(0, [Answer(reply)]).scores[0]
        assert outcome.status == "scored" and outcome.metrics["macro_mean"]["query"] == 0
        assert outcome.metrics["submission"]["response"] == reply


def test_fixed_scores_reach_the_task_and_the_summary(catalogue: Catalogue) -> None:
    demo = task(catalogue, "megabench_demo")
    replies = [demo.gold_answer(number) for number in range(len(demo))]  # type: ignore[attr-defined]
    bold = next(number for number, reply in enumerate(replies) if reply.startswith("Answer: "))
    replies[bold] = replies[bold].replace("Answer:", "**Answer:**")
    values = [
        demo.score(number, [Answer(reply)]).scores[0].metrics["macro_mean"] for number, reply in enumerate(replies)
    ]
    assert (values[bold]["query"], values[bold]["fixed"]) == (0, 1)
    aggregation = next(metric.aggregation for metric in demo.metrics if metric.name == "macro_mean")
    estimate = aggregation(values)
    details = estimate.details["megabench"]
    assert estimate.value < 1
    assert details["summary"]["fixed"] == {"macro_mean_score": 1.0, "num_tasks_affected": 1}
    affected = details["tasks"][values[bold]["task_name"]]
    assert (affected["mean_task_score"] < 1, affected["fixed_mean_task_score"]) == (True, 1.0)
