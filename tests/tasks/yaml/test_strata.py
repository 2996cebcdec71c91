from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.outcome import Estimate
from lmms_eval.api.task import TaskOptions
from lmms_eval.errors import DataError, TaskError
from lmms_eval.tasks import Catalogue, select_tasks
from lmms_eval.tasks.megabench import utils as megabench
from lmms_eval.tasks.mlvu import utils as mlvu
from lmms_eval.tasks.mmstar import utils as mmstar
from tests.cases import for_each
from tests.tasks.kit import Function, loaded, make_task

MACRO = Function("utils.macro")
CODE = "def macro(values):\n    return 0.5\n"
ROWS = [
    {"question": "sky colour", "answer": "blue", "topic": "sky"},
    {"question": "grass colour", "answer": "green", "topic": None},
    {"question": "snow colour", "answer": "white", "topic": 3},
]


def entry(strata: Any, aggregation: Any = MACRO, metric: str = "exact_match") -> dict[str, Any]:
    return {"metric": metric, "aggregation": aggregation, "strata": strata}


def test_documents_have_the_stratum_of_their_column(tmp_path: Path) -> None:
    rows = [{**row, "topic": str(row["topic"])} for row in ROWS]
    task = loaded(tmp_path, {"metric_list": [entry({"column": "topic", "scale": 100})]}, CODE, rows=rows)
    assert task.strata([2, 0]) == ["3", "sky"]
    assert task.metrics[0].macro_scale == 100
    plain = loaded(tmp_path / "plain")
    assert plain.strata([0]) is None and plain.metrics[0].macro_scale == 0


@for_each(
    ("entries", "message"),
    [
        ([entry(3)], r"strata of metric exact_match: give the name of a column, or \{column: NAME"),
        ([entry({"column": "topic", "scale": 0})], "give the name of a column"),
        ([entry({"column": "topic", "by": 1})], "give the name of a column"),
        ([entry("")], "give the name of a column"),
        ([entry("topic", "mean")], "aggregation 'mean' is no mean over strata"),
        ([entry("topic"), entry("kind", metric="anls")], "strata by kind and topic; give one column"),
    ],
)
def test_what_states_no_strata_is_refused(tmp_path: Path, entries: list[Any], message: str) -> None:
    with pytest.raises(TaskError, match=message):
        make_task(tmp_path, {"metric_list": entries}, CODE)


def test_an_absent_column_is_named(tmp_path: Path) -> None:
    task = loaded(tmp_path, {"metric_list": [entry("subject")]}, CODE)
    with pytest.raises(DataError, match=r"strata by 'subject': .* has only question, answer"):
        task.strata([0])


def megabench_values(strata: Sequence[tuple[str, float]]) -> Any:
    values = [
        {"task_name": name, "eval_type": "rule", "query": score, "score": score, "fixed": None}
        for name, score in strata
    ]
    return megabench.aggregate_macro_mean(values)


def mlvu_values(strata: Sequence[tuple[str, float]]) -> Any:
    docs = [({"question": "?", "task_type": name, "answer": "A"}, "A" if score else "B") for name, score in strata]
    return mlvu.aggregate_dev([mlvu.process_results(doc, [said])[mlvu.METRIC] for doc, said in docs])


def mmstar_values(strata: Sequence[tuple[str, float]]) -> Any:
    return mmstar.aggregate([{"l2_category": name, "score": score} for name, score in strata])


@for_each(
    ("task", "metric", "aggregate", "names"),
    [
        ("megabench_core", "macro_mean", megabench_values, ("x", "y", "z")),
        ("megabench_open_si", "macro_mean", megabench_values, ("x", "y", "z")),
        ("mlvu_dev", mlvu.METRIC, mlvu_values, mlvu.DEV_TYPES[:3]),
        ("mlvu_test", f"{mlvu.METRIC}_fixed", mlvu_values, mlvu.DEV_TYPES[:3]),
        ("mmstar", "average", mmstar_values, ("x", "y", "z")),
    ],
)
def test_packaged_tasks_aggregate_as_their_strata_say(
    task: str, metric: str, aggregate: Any, names: Sequence[str]
) -> None:
    (made,) = select_tasks([task], Catalogue(), TaskOptions()).tasks
    (definition,) = (one for one in made.metrics if one.name == metric)
    scores: Mapping[str, list[float]] = {names[0]: [1.0, 0.0, 1.0, 1.0], names[1]: [0.0], names[2]: [1.0, 1.0, 0.0]}
    found = aggregate([(name, score) for name, of in scores.items() for score in of])
    assert isinstance(found, Estimate) and found.value is not None
    mean = math.fsum(math.fsum(of) / len(of) for of in scores.values()) / len(scores)
    assert definition.macro_scale > 0 and found.value == pytest.approx(definition.macro_scale * mean)
