from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from PIL import Image

from lmms_eval.api.judging import JudgeQuestion, Verdict, repeat_name
from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.task import Answer, Task, TaskOptions
from lmms_eval.engine.judging import Inquiry, Interview
from lmms_eval.errors import TaskError
from lmms_eval.judges.prompts import user_turn
from lmms_eval.tasks import Catalogue, select_tasks
from lmms_eval.tasks.yaml.scoring import questions, repeated, scope, verdicts_in
from tests.cases import for_each
from tests.evaluation.judged_kit import NAME, rated_task


def made(*items: Any, settings: Any = None) -> list[JudgeQuestion]:
    return questions(lambda doc, results: list(items), {}, ["reply"], settings, "here")


def test_mappings_become_questions() -> None:
    image = Image.new("RGB", (40, 20), "red")
    item = {"name": "style", "prompt": "Rate", "images": [image], "max_side": 20, "reader": "score",
            "generation": {"max_new_tokens": 5}, "details": {"about": "style"}}  # fmt: skip
    (question,) = made(item)
    assert question.generation == {"temperature": 0, "max_new_tokens": 5}
    assert question.accepts("8")
    assert not question.accepts("well")
    picture, text = question.build_messages().messages[0].content
    assert (picture.type, text.text) == ("image", "Rate")
    assert question.details == {"about": "style"}


def test_messages_and_ready_questions_stay_what_they_are() -> None:
    turn = {"role": "user", "content": [{"type": "text", "text": "Rate"}]}
    ready = JudgeQuestion("own", lambda: user_turn("x"), bool)
    first, second, third = made({"name": "a", "messages": [turn]}, {"messages": user_turn("y")}, ready)
    assert first.build_messages() == ChatMessages.model_validate({"messages": [turn]})
    assert (second.name, second.build_messages().text()) == ("judge", "y")
    assert third is ready


@for_each(
    ("items", "message"),
    [
        (({"promt": "x"},), "is a mapping with some of"),
        (({"prompt": "x", "messages": []},), "either prompt or messages"),
        (({"name": "a"},), "either prompt or messages"),
        (({"prompt": "x"}, {"prompt": "y"}), "names must differ"),
        (({"prompt": "x", "name": "@a"},), "not begin with"),
        (({"prompt": "x", "reader": "numbers"},), "reader 'numbers'"),
        (("text",), "is a mapping"),
    ],
)
def test_wrong_questions_are_refused(items: tuple[Any, ...], message: str) -> None:
    with pytest.raises(TaskError, match=f"here: .*{message}"):
        made(*items)


def test_functions_get_the_settings_that_they_take() -> None:
    def ask(doc: Any, results: Any, lmms_eval_specific_kwargs: Any = None) -> list[dict[str, str]]:
        return [{"prompt": lmms_eval_specific_kwargs["tone"] + results[0]}]

    (question,) = questions(ask, {}, ["reply"], {"tone": "kind "}, "here")
    assert question.build_messages().text() == "kind reply"
    assert questions(lambda doc, results: None, {}, [], None, "here") == []


def test_scopes_keep_evaluations_apart() -> None:
    names = [scope("none", 0), scope("none", 2), scope("first", None), scope("first", 0)]
    assert names == ["", "@none#2/", "@first/", "@first#0/"]
    verdicts = [Verdict(f"{name}style", str(number), True, "jury") for number, name in enumerate(names)]
    assert [verdicts_in(verdicts, name)["style"].text for name in names] == ["0", "1", "2", "3"]
    assert all(len(verdicts_in(verdicts, name)) == 1 for name in names)


def task(folder: Path, **options: Any) -> Any:
    rated_task(folder)
    found = select_tasks((NAME,), Catalogue([str(folder)]), TaskOptions(**options)).tasks[0]
    found.load()
    return found


def test_every_set_of_answers_is_asked_about_and_scored_by_its_own_verdicts(tmp_path: Path) -> None:
    judged = task(tmp_path, repeats=2)
    answers = [Answer("good"), Answer("bad")]
    asked = judged.judge_questions(3, answers)
    assert [question.name for question in asked] == ["rating", "@none#1/rating"]
    assert ["'good'" in asked[0].build_messages().text(), "'bad'" in asked[1].build_messages().text()] == [True, True]
    verdicts = [Verdict(question.name, text, True, "jury") for question, text in zip(asked, "84", strict=True)]
    (score,) = judged.score(3, answers, verdicts).scores
    assert score.metrics == {"rating": 6.0}
    assert [dict(each) for each in score.per_answer] == [{"rating": 8}, {"rating": 4}]


def test_each_asking_of_the_judge_scores_each_answer(tmp_path: Path) -> None:
    judged = task(tmp_path, repeats=2, judge_repeats=2)
    answers = [Answer("good"), Answer("bad")]
    asked = judged.judge_questions(3, answers)
    verdicts = [Verdict(question.name, text, True, "jury") for question, text in zip(asked, "8742", strict=True)]
    (score,) = judged.score(3, answers, verdicts).scores
    assert score.metrics == {"rating": 6.0}  # by the first replies
    assert score.per_verdict == (({"rating": 8}, {"rating": 7}), ({"rating": 4}, {"rating": 2}))
    lost = [verdicts[0], Verdict(asked[1].name, None, False, "jury", error="gone"), *verdicts[2:]]
    assert judged.score(3, answers, lost).scores[0].per_verdict[0] == ({"rating": 8}, {})
    assert task(tmp_path / "once").score(3, answers[:1], verdicts[:1]).scores[0].per_verdict == ()


def test_without_verdicts_the_sample_is_unscored(tmp_path: Path) -> None:
    judged = task(tmp_path)
    assert judged.is_judged
    (score,) = judged.score(0, [Answer("x")]).scores
    assert (score.status, score.reason) == ("unscored", "no judge")
    assert not task(tmp_path / "other", predict_only=True).is_judged


def test_a_task_that_cannot_take_verdicts_is_refused(tmp_path: Path) -> None:
    rated_task(tmp_path)
    source = (tmp_path / "rated_utils.py").read_text()
    (tmp_path / "rated_utils.py").write_text(source.replace("results, verdicts):", "results):\n    verdicts = {}"))
    with pytest.raises(TaskError, match="verdicts"):
        select_tasks((NAME,), Catalogue([str(tmp_path)]), TaskOptions())


def test_repeats_of_a_question_have_names_and_numbers_of_their_own(tmp_path: Path) -> None:
    asked = repeated(made({"name": "a", "prompt": "x"}, {"name": "b", "prompt": "y"}), 3)
    assert [question.name for question in asked] == ["a", "a~2", "a~3", "b", "b~2", "b~3"]
    assert [question.asking for question in asked] == [1, 2, 3, 1, 2, 3]
    assert [repeat_name("a", number) for number in (1, 2)] == ["a", "a~2"]
    task = cast("Task", None)
    interviews = [Interview(question, "task/0", task, 0, Inquiry("jury"), lambda _: None) for question in asked]
    requests = [request for interview in interviews for request in interview.open()]
    assert len({request.id for request in requests}) == 6
    assert len({(request.repeat, request.seed) for request in requests}) == 3  # no reply is taken for another's
    rated_task(tmp_path, 1)
    for times in (1, 2):
        (task,) = select_tasks([NAME], Catalogue([str(tmp_path)]), TaskOptions(judge_repeats=times)).tasks
        task.load()
        assert len(task.judge_questions(0, [Answer("a0")])) == times
