"""Vectors of lm-eval's functions, against the names that its task files import and what its tasks use here."""

from __future__ import annotations

import importlib
import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lmms_eval import stats
from lmms_eval.errors import TaskError
from lmms_eval.filters import FilterEnsemble, get_filter, run_filters
from lmms_eval.metrics.choice import acc_all, all_right_by_question
from lmms_eval.metrics.table import AGGREGATIONS
from lmms_eval.tasks.lm_eval.metrics import definition_of, exact_match
from lmms_eval.tasks.lm_eval.prompts import SAMPLERS, ExampleDraws, Said, needs_blank, single_turn
from lmms_eval.tasks.lm_eval.scoring import FILTERS, ChoiceLikelihoods
from lmms_eval.tasks.yaml.prompts import field_value
from tests.parity.compare import agree, decode
from tests.parity.vectors import PASSED, Vector, Verdict, deviates, failed, line_adapter

Call = Callable[..., Any]
RULE = "lm_eval_filter_without_a_group_falls_back"
HOMES = ("api.metrics", "utils", "filters.extraction")


def _aggregated(name: str, values: Sequence[Any]) -> Any:
    return definition_of(name, name, True, "a task").aggregation(values)


def _filtered(name: str, arguments: Mapping[str, Any], answers: Any, docs: Any = None) -> Any:
    made = FILTERS[name] if name in FILTERS else get_filter(name)
    if name == "regex":
        made = _imported("RegexFilter")
    pipeline = FilterEnsemble("none", (made(**arguments),))
    return [
        list(one) if isinstance(one, tuple) else one
        for one in run_filters(pipeline, answers, docs if docs is not None else [{}] * len(answers))
    ]


class _Documents:
    def __init__(self, rows: Sequence[Any]) -> None:
        self._rows = rows

    def text_view(self, number: int) -> Any:
        return self._rows[number]


def _sampled(kind: str, pool: list[Any], seed: int, indices: list[int] | None, calls: list[Any]) -> list[Any]:
    """One draw after the other with the same generator; only here is the number of examples another each time."""
    if kind not in SAMPLERS:
        raise TaskError(f"sampler {kind!r}")
    if indices is not None and kind == "default":
        pool = [pool[number] for number in indices]
    documents, shared = _Documents([document for _, document in calls]), random.Random(seed)
    made = []
    for number, (count, document) in enumerate(calls):
        if not count:
            made.append([])  # a task without examples draws nothing
            continue
        draws = ExampleDraws(pool, documents, count, kind, document is not None, seed)  # type: ignore[arg-type]
        draws._random = shared
        draws.check("a task")
        made.append([pool[one] for one in draws._draw(number)])
    return made


def _said(messages: Sequence[Sequence[str]]) -> list[Said]:
    return [Said(role, text, after) for role, text, after in messages]  # type: ignore[arg-type]


def _softmax(values: Sequence[float]) -> list[float]:
    return ChoiceLikelihoods(values, [], [], [], []).probabilities()


def _shared_words(prediction: str, truth: str) -> float:
    words = set(truth.split())
    return len(set(prediction.split()) & words) / max(len(words), 1)


def _delimited(left: str | None, right: str | None, delimiter: str) -> str:
    left, right = left or "", right or ""
    return f"{left}{delimiter if right and needs_blank(left, right) else ''}{right}"


def _has_stderr(name: str, iterations: int) -> bool:
    """Whether a task's value with this aggregation has an error."""
    entry = AGGREGATIONS[definition_of(name, name, True, "a task").aggregation_name or ""]
    return iterations > 0 and (entry.is_mean or name == "acc_all" or entry.bootstrap_iterations > 0)


def _bootstrapped(name: str, values: Sequence[Any], iterations: int) -> float:
    definition = definition_of(name, name, True, "a task")
    statistic = definition.aggregation_name if definition.aggregation_name in stats.NAMED_STATISTICS else None
    return stats.bootstrap_stderr(statistic or definition.aggregation, values, iterations)


def _non_serializable(text: str) -> Any:
    import numpy as np

    values = {
        "np.True_": np.True_, "np.int64(4)": np.int64(4), "np.float32(0.5)": np.float32(0.5), "{1}": {1}, "None": None,
        "(1, 2)": (1, 2), "'x'": "x", "3.5": 3.5, "b'q'": b"q", "[1]": [1],
    }  # fmt: skip
    return _imported("handle_non_serializable")(values[text])


ADAPTED: dict[str, Call] = {
    "acc_all": acc_all,
    "acc_all_stderr": lambda items: stats.mean_stderr(all_right_by_question(items)),
    "apply_template": lambda template, doc: field_value(template, doc, "a key", True),
    "bootstrap_stderr": _bootstrapped,
    "handle_non_serializable": _non_serializable,
    "has_stderr": _has_stderr,
    "maybe_delimit": _delimited,
    "messages_to_text": lambda messages: "".join(one.text + one.after for one in _said(messages)),
    "metric:exact_match": exact_match,
    "metric_max_over_ground_truths": lambda _name, *rest: _imported("metric_max_over_ground_truths")(
        _shared_words, *rest
    ),
    "multiturn_to_singleturn": lambda messages: [
        {"role": one.role, "content": one.text} for one in single_turn(_said(messages))
    ],
    "requires_delimiter": needs_blank,
    "sampler": _sampled,
    "softmax": _softmax,
    "unweighted_mean_stderr": stats.unweighted_group_stderr,
}


def _imported(name: str) -> Call:
    for home in HOMES:
        if hasattr(module := importlib.import_module(f"lmms_eval.compat.lm_eval.{home}"), name):
            return getattr(module, name)
    raise KeyError(f"no function {name!r}")


def _found(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    kind, _, own = name.partition(":")
    if kind == "aggregation":
        return _aggregated(own, *args)
    if kind == "filter":
        return _filtered(own, *args)
    return (ADAPTED.get(name) or _imported(name))(*args, **kwargs)


@line_adapter(
    *(
        f"lm_family/fn_{stem}.jsonl"
        for stem in (
            "aggregations", "corpus", "exact_match", "filters", "groups", "prompts", "samplers", "stderr", "templates",
            "text",
        )
    )
)  # fmt: skip
def functions(vector: Vector) -> Verdict:
    record = vector.record
    name, args, kwargs = record["function"], decode(record["args"]), decode(record["kwargs"])
    try:
        found = _found(name, args, kwargs)
    except Exception as error:  # noqa: BLE001 - a clear error of any kind will do
        return PASSED if "raises" in record else failed(f"{type(error).__name__}: {error}")
    if name == "filter:regex" and record.get("raises") == "IndexError":
        wanted = [[args[0]["fallback"]] * len(answers) for answers in args[1]]
        return deviates(RULE) if found == wanted else failed(f"{found!r} instead of {wanted!r}")
    if "raises" in record:
        if isinstance(found, float) and math.isnan(found):
            return PASSED  # no number, which a result shows as such
        return failed(f"{found!r} instead of {record['raises']}")
    expected = decode(record["expected"])
    if name == "aggregation:median" and isinstance(expected, bool):
        expected = int(expected)  # we count truths as numbers
    return PASSED if agree(expected, found) else failed(f"{found!r} instead of {expected!r}")
