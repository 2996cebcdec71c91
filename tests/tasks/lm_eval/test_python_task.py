"""Tests of ``lmms_eval.tasks.lm_eval.python_task``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.response import Response
from lmms_eval.api.task import Answer, TaskOptions
from lmms_eval.errors import LmmsEvalError
from lmms_eval.tasks.lm_eval.python_task import PythonTask
from lmms_eval.tasks.selection import build_from_spec, rebuilt
from tests.cases import for_each
from tests.tasks.kit import Function
from tests.tasks.lm_eval.kit import asked, opened, pack_task

OWN = """
import datasets
from lm_eval.api import metrics
from lm_eval.api.instance import Instance
from lm_eval.api.task import ConfigurableTask


def mean(items):
    return sum(items) / len(items)


class Two(ConfigurableTask):
    VERSION = 4
    DATASET_PATH = "nowhere"

    def __init__(self, config=None):
        super().__init__(config={"metadata": {"version": self.VERSION}})

    def download(self, dataset_kwargs=None):
        self.dataset = {"validation": datasets.Dataset.from_list([{"q": f"q{n}", "a": f"a{n}"} for n in range(4)])}

    def has_validation_docs(self):
        return True

    def validation_docs(self):
        return self.dataset["validation"]

    def doc_to_text(self, doc):
        return doc["q"] + ":"

    def doc_to_target(self, doc):
        return " " + doc["a"]

    def construct_requests(self, doc, ctx, chat_template=None, apply_chat_template=False, **kwargs):
        return [
            Instance(request_type="loglikelihood", doc=doc, arguments=(ctx, " none"), idx=1, **kwargs),
            Instance(request_type="generate_until", doc=doc, arguments=(ctx, {"until": ["\\n"]}), idx=0, **kwargs),
        ]

    def process_results(self, doc, results):
        text, (value, greedy) = results
        return {"right": float(text == doc["a"]), "none": value, "greedy": greedy}

    def aggregation(self):
        return {"right": "mean", "none": mean, "greedy": mean}

    def higher_is_better(self):
        return {"right": True, "none": False, "greedy": True}


class Whole(Two):
    def doc_to_text(self, doc):
        return ""

    def construct_requests(self, doc, ctx, **kwargs):
        return [
            Instance(request_type="loglikelihood_rolling", doc=doc, arguments=(doc["q"],), idx=0, **kwargs),
            Instance(request_type="loglikelihood", doc=doc, arguments=(doc["q"], " none"), idx=1, **kwargs),
        ]

    def process_results(self, doc, results):
        value, (end, greedy) = results
        return {"whole": value, "end": end + greedy}

    def aggregation(self):
        return {"whole": metrics.mean, "end": mean}


class Bad(Two):
    def __init__(self, config=None):
        raise ValueError("no such thing")


class Other(Two):
    def construct_requests(self, doc, ctx, **kwargs):
        return Instance(request_type="multiple_choice", doc=doc, arguments=(ctx, "x"), idx=0, **kwargs)
"""


def keys(name: str, **more: Any) -> dict[str, Any]:
    empty = dict.fromkeys(
        ("dataset_path", "dataset_kwargs", "test_split", "doc_to_text", "doc_to_target", "metric_list")
    )
    return {**empty, "class": Function(f"utils.{name}"), **more}


def test_requests_of_several_kinds(tmp_path: Path) -> None:
    task = opened(tmp_path, keys("Two"), OWN, TaskOptions(num_fewshot=1))
    assert (task.version, len(task), task.split) == (4, 4, "validation")
    text, none = asked(task, 2)
    assert (text.kind, text.generation) == ("generate_until", {"until": ["\n"], "max_new_tokens": 256})
    assert (none.kind, none.continuation, none.context) == ("loglikelihood", " none", text.context)
    assert text.context.endswith("\n\nq2:") and text.context.count(":") == 2
    score = task.score(2, [Answer(["a2", [1.5, True]])]).scores[0]
    assert dict(score.metrics) == {"right": 1.0, "none": -1.5, "greedy": 1}
    assert [(one.name, one.higher_is_better) for one in task.metrics] == [
        ("right", True), ("none", False), ("greedy", True)
    ]  # fmt: skip


def test_the_likelihood_of_a_whole_text(tmp_path: Path) -> None:
    task = opened(tmp_path, keys("Whole"), OWN)
    exchange = task.exchange(1, 0)
    whole, end = exchange.open()
    assert (whole.kind, whole.context, whole.continuation) == ("loglikelihood_rolling", "", "q1")
    assert (end.kind, end.continuation) == ("loglikelihood", " none")
    exchange.advance([Response(whole.id, loglikelihood=-2.5), Response(end.id, loglikelihood=0.0, is_greedy=True)])
    answer = exchange.answer()
    assert answer.value == [[2.5], [0.0, True]]
    assert dict(task.score(1, [answer]).scores[0].metrics) == {"whole": -2.5, "end": 1.0}


def test_the_mean_of_lm_eval_is_a_known_aggregation(tmp_path: Path) -> None:
    whole, end = opened(tmp_path, keys("Whole"), OWN).metrics
    assert (whole.aggregation_name, end.aggregation_name) == ("mean", None)
    assert whole.aggregation([1.0, 2.0]) == end.aggregation([1.0, 2.0]) == 1.5


def test_it_is_built_again_with_its_class(tmp_path: Path) -> None:
    task = opened(tmp_path, keys("Two"), OWN)
    assert isinstance(rebuilt(task, TaskOptions(num_fewshot=2)), PythonTask)
    assert isinstance(build_from_spec(task.spec()), PythonTask)


@for_each(
    ("changes", "message"),
    [
        (keys("Bad"), "key 'class': Bad cannot be built: ValueError: no such thing"),
        (keys("mean"), "is no task class of lm-eval"),
        (keys("Nothing"), "has no function 'Nothing'"),
        (keys("Two", recipe="card=x"), "key 'recipe': unitxt cannot be imported"),
    ],
)
def test_classes_that_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], message: str
) -> None:
    monkeypatch.setitem(sys.modules, "unitxt", None)
    with pytest.raises(LmmsEvalError, match=message):
        pack_task(tmp_path, changes, OWN)


def test_a_request_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LmmsEvalError, match="a request of type 'multiple_choice' is not in this version"):
        asked(opened(tmp_path, keys("Other"), OWN))
