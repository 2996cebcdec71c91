"""Answers that need no model."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from lmms_eval.api.request import Request
from lmms_eval.errors import ModelError
from lmms_eval.models.baseline import Baseline
from tests.cases import for_each
from tests.models.fakes import FakeTask, answers

DOCS = [
    {"question": "A. red\nB. blue\nWhich?", "answer": "B", "choices": ["red", "blue"]},
    {"question": "What?", "answer": ["first", "second"], "choices": ["x", "y"]},
]


def best(task: FakeTask, doc_id: int, model: Baseline) -> int:
    found = answers(model, task.choice_requests(doc_id))
    values = [response.loglikelihood or 0.0 for response in found.values()]
    return values.index(max(values))


def test_gold_says_the_target() -> None:
    task = FakeTask(DOCS)
    found = answers(Baseline(), task.requests())
    assert [response.text for response in found.values()] == ["B", "first"]


def test_gold_prefers_the_answer_that_the_task_offers() -> None:
    class Formatted(FakeTask):
        def gold_answer(self, doc_id: int) -> str:
            return f"Answer: {self.docs[doc_id]['answer']}"

    found = answers(Baseline("gold"), [Formatted(DOCS).request(0)])
    assert found["fake/0/0/0/0"].text == "Answer: B"


def test_gold_names_the_choice_that_a_number_means() -> None:
    class Choosing(FakeTask):
        def choices(self, doc_id: int) -> list[str]:
            return list(self.docs[doc_id]["choices"])

    docs = [{"question": "q", "answer": answer, "choices": ["red", "blue"]} for answer in (1, [0], 7, "text")]
    found = answers(Baseline(), Choosing(docs).requests())
    assert [response.text for response in found.values()] == ["blue", "red", "7", "text"]


@for_each("answer", [1, "1", "y", "[1]", ["y"], [1, 2]])
def test_gold_choice_is_the_likeliest(answer: Any) -> None:
    task = FakeTask([{"question": "q", "answer": answer, "choices": ["x", "y", "z"]}], output_type="multiple_choice")
    found = answers(Baseline(), task.choice_requests(0))
    assert [response.is_greedy for response in found.values()] == [False, True, answer == [1, 2]]
    assert best(task, 0, Baseline()) == 1
    assert not any(response.is_loss for response in found.values())


def test_digits_are_the_number_of_a_choice() -> None:
    task = FakeTask([{"question": "q", "answer": "0", "choices": ["1", "0"]}], output_type="multiple_choice")
    assert best(task, 0, Baseline()) == 0


def test_gold_of_a_likelihood_task_is_certain() -> None:
    task = FakeTask(DOCS, output_type="loglikelihood")
    found = answers(Baseline(), [task.request(0, kind="loglikelihood", continuation="anything")])
    assert found["fake/0/0/0/0"].loglikelihood == 0.0 and found["fake/0/0/0/0"].is_greedy


def test_whole_texts() -> None:
    task = FakeTask(DOCS, output_type="loglikelihood_rolling")
    asked = [task.request(0, kind="loglikelihood_rolling", continuation="A whole text.", seed=3)]
    gold, drawn, same, other = (
        next(iter(answers(model, asked).values()))
        for model in (
            Baseline(),
            Baseline("random_choice"),
            Baseline("constant", "A whole text."),
            Baseline("constant"),
        )
    )
    assert (gold.loglikelihood, same.loglikelihood) == (0.0, 0.0)
    assert other.loglikelihood == -10.0 and drawn.loglikelihood is not None and -1 < drawn.loglikelihood < 0
    assert not any(response.is_loss for response in (gold, drawn, same, other))


def seeded(task: FakeTask, seed: int) -> Request:
    return task.request(0, seed=seed)


def test_random_choice_draws_by_the_seed_of_the_request() -> None:
    task, model = FakeTask(DOCS), Baseline("random_choice")
    drawn = [answers(model, [seeded(task, seed)])["fake/0/0/0/0"].text for seed in range(200)]
    again = [answers(model, [seeded(task, seed)])["fake/0/0/0/0"].text for seed in range(200)]
    assert drawn == again
    assert set(drawn) == {"A", "B"} and 60 < Counter(drawn)["A"] < 140


def test_random_choice_by_likelihood_is_even() -> None:
    task = FakeTask(DOCS, output_type="multiple_choice")
    model = Baseline("random_choice")
    wins = 0
    for seed in range(200):
        requests = [
            task.request(0, kind="loglikelihood", continuation=text, index=index, seed=2 * seed + index)
            for index, text in enumerate(("x", "y"))
        ]
        found = answers(model, requests)
        wins += found["fake/0/0/0/0"].loglikelihood > found["fake/0/0/0/1"].loglikelihood  # type: ignore[operator]
    assert 60 < wins < 140


def test_random_choice_takes_options_from_the_arguments_or_the_task() -> None:
    class Choosing(FakeTask):
        def choices(self, doc_id: int) -> list[str]:
            return ["from task"]

    assert answers(Baseline("random_choice", options="yes"), [FakeTask(DOCS).request(0)])["fake/0/0/0/0"].text == "yes"
    assert answers(Baseline("random_choice"), [Choosing(DOCS).request(1)])["fake/1/0/0/0"].text == "from task"


def test_random_choice_without_options_is_a_failure_that_says_so() -> None:
    error = answers(Baseline("random_choice"), [FakeTask(DOCS).request(1)])["fake/1/0/0/0"].error
    assert error is not None and error.kind == "bad_request" and "options=A|B|C|D" in error.message


def test_constant() -> None:
    task = FakeTask(DOCS, output_type="multiple_choice")
    model = Baseline("constant", text="blue")
    assert answers(model, [task.request(1)])["fake/1/0/0/0"].text == "blue"
    assert best(task, 0, model) == 1
    assert model.identity() == {"strategy": "constant", "text": "blue", "options": []}


def test_unknown_strategy() -> None:
    with pytest.raises(ModelError, match=r"no strategy 'golden'.*gold, random_choice, constant"):
        Baseline("golden")


def test_a_task_without_targets() -> None:
    task = FakeTask(DOCS)
    task.target = None  # type: ignore[assignment,method-assign]
    with pytest.raises(ModelError, match="reference answers"):
        answers(Baseline(), [task.request(0)])


def test_nothing_is_rendered() -> None:
    request = FakeTask(DOCS).request(0)
    assert Baseline().prepare(request) is request
