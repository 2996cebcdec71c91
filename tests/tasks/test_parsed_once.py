"""Each benchmark parses a document once in a process, whatever is asked of it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from lmms_eval.api.task import Answer, TaskOptions
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.data.documents import ROWS
from lmms_eval.tasks.general_bench.items import Item
from lmms_eval.tasks.general_bench.prompts import media
from lmms_eval.tasks.selection import select_tasks
from lmms_eval.tasks.yaml.task import YamlTask
from tests.cases import for_each

PARSERS = {
    "megabench_demo": "lmms_eval.tasks.megabench.data.QueryRow",
    "general_bench_demo": "lmms_eval.tasks.general_bench.data.documents.read_item",
    "mmie_demo": "lmms_eval.tasks.mmie.data.documents.read_question",
    "milebench_demo": "lmms_eval.tasks.milebench.prompts.PromptParts",
}
"""What makes the parsed form, by the task that uses it."""


@for_each("name", PARSERS)
def test_a_document_is_parsed_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: Counter[str] = Counter()
    module, _, parser = PARSERS[name].rpartition(".")
    own = getattr(__import__(module, fromlist=[parser]), parser)

    def counted(*args: Any, **kwargs: Any) -> Any:
        made[name] += 1
        return own(*args, **kwargs)

    task = next(task for task in select_tasks([name], Catalogue(), TaskOptions()).tasks)
    assert isinstance(task, YamlTask)
    task.load()
    monkeypatch.setattr(PARSERS[name], counted)
    for number in range(3):
        made.clear()
        exchange = task.exchange(number, 0)
        (request,) = exchange.open()
        request.build_messages()
        task.prompts.visuals(task.documents[number])
        answers = [Answer(task.gold_answer(number))]
        if task.is_judged:
            task.judge_questions(number, answers)
        kept = len(ROWS)
        task.score(number, answers)
        assert made[name] == 1
        assert len(ROWS) == kept - 1


def test_the_question_of_a_general_bench_document_is_put_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    own = media.question

    def counted(item: Item, *args: Any) -> media.Question:
        asked.append(item.id)
        return own(item, *args)

    name = "general_bench_demo_image_comprehension_sports_image_classification"
    (task,) = select_tasks([name], Catalogue(), TaskOptions()).tasks
    assert isinstance(task, YamlTask)
    task.load()
    monkeypatch.setattr(media, "question", counted)
    (request,) = task.exchange(0, 0).open()  # its text, for the cost and the sample
    request.build_messages()
    assert len(asked) == 1
