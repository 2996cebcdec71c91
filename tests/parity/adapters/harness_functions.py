"""Vectors of the harness core's pure functions (``harness/functions``)."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lmms_eval import stats
from lmms_eval.errors import LmmsEvalError
from lmms_eval.filters import FilterEnsemble, get_filter, reasoning, run_filters
from lmms_eval.judges import prompts as replies
from lmms_eval.metrics import aggregations, text
from lmms_eval.metrics.answers import extract_mcq_answer
from lmms_eval.models.model_utils import concurrency_control, reasoning_model_utils
from lmms_eval.utils import arguments, concurrency, make_table, names, redaction
from lmms_eval.utils.records import to_dict
from tests.parity.compare import REL_TOL, TEXT_SCORE_REL_TOL, agree, decode, plain
from tests.parity.tables import text_differences
from tests.parity.vectors import PASSED, Vector, Verdict, deviates, failed, line_adapter

Call = Callable[..., Any]
_TEXT_SCORES = frozenset({"bleu", "chrf", "ter"})
MEDIAN_RULE = "median_is_sorted"


def _run_filter(steps: Sequence[Any], answers: list[list[str]], docs: Sequence[Any] | None = None) -> list[Any]:
    filters = tuple(get_filter(name)(**(kwargs or {})) for name, kwargs in steps)
    return run_filters(FilterEnsemble("none", filters), answers, docs if docs is not None else [{}] * len(answers))


def _power(effect_size: float = 0.03, current_n: int | None = None, **kwargs: Any) -> dict[str, Any]:
    result = to_dict(stats.power_analysis(stats.PowerQuestion(effect_size, **kwargs), current_n))
    return {key: value for key, value in result.items() if value is not None}


def _item_errors(items: list[Any], config: Mapping[str, str]) -> dict[str, Any]:
    errors = stats.item_errors(items, config.get("cluster_key"), config.get("score_key", "score"))
    shown = {"m_stderr_clt,none": errors.clt, "m_stderr_clustered,none": errors.clustered}
    return {key: "N/A" if value is None else value for key, value in shown.items()}


def _stability(questions: list[list[Any]], config: Mapping[str, Any]) -> dict[str, float]:
    if config["repeats"] < 2:
        return {}
    scores = [[stats.item_number(item) or 0 for item in answers] for answers in questions]
    return {f"m_{name},none": value for name, value in to_dict(stats.stability(scores)).items()}


def _decide(current_concurrency: int, config: Mapping[str, Any], **window: Any) -> concurrency.Decision:
    adaptive = concurrency.AdaptiveConfig(**config).sanitized()
    return concurrency.decide(current_concurrency, concurrency.LatencyWindow(**window), adaptive)


def _shards(n_docs: int, world_size: int, limit: int | None, offset: int) -> list[list[int]]:
    return names.shard_indices(n_docs, world_size, limit, offset)


ADAPTED: dict[str, Call] = {
    "clt_and_clustered": _item_errors,
    "config": lambda **kwargs: concurrency.AdaptiveConfig(**kwargs).sanitized(),
    "decide": _decide,
    "exact_match_hf_evaluate": lambda predictions, references, **kw: text.exact_match(references, predictions, **kw),
    "extract_mcq_answer": extract_mcq_answer,
    "extract_text_prefix": concurrency_control.extract_text_prefix_from_chat_messages,
    "f1_score": aggregations.f1,
    "judge_parse_binary": replies.parse_binary,
    "judge_parse_comparative": replies.parse_comparative,
    "judge_parse_json": replies.parse_json,
    "judge_parse_score": replies.parse_score,
    "make_table": make_table,
    "parse_binary_response": replies.parse_binary_response,
    "power_analysis": _power,
    "redact": redaction.redact,
    "run_filter": _run_filter,
    "seed_list": arguments.parse_seed_list,
    "shards": _shards,
    "stability": _stability,
    "take_first_on_empty": _run_filter,
}
HOMES = (
    stats,
    aggregations,
    text,
    arguments,
    names,
    concurrency,
    concurrency_control,
    reasoning,
    reasoning_model_utils,
)


def _function(name: str) -> Call | None:
    if name in ADAPTED:
        return ADAPTED[name]
    return next((getattr(home, name) for home in HOMES if callable(getattr(home, name, None))), None)


def _middle_as_given(items: Sequence[Any]) -> Any:
    """What the reference takes for the median: the middle of the list as given."""
    return items[len(items) // 2]


def _judge_median(record: Mapping[str, Any], ours: Any) -> Verdict:
    """The recorded value must be the reference's mistake, and ours the true median."""
    items = record["args"][0]
    if not agree(record["expected"], _middle_as_given(items)):
        return failed(f"recorded {record['expected']!r} is not the middle of the list as given")
    return deviates(MEDIAN_RULE) if agree(statistics.median(items), ours) else failed(f"{ours!r} is no median")


def _judge_bootstrap(record: Mapping[str, Any]) -> Verdict:
    name, items, iterations = decode(record["args"])
    if name == "median":
        recorded = stats.bootstrap_stderr(_middle_as_given, items, iterations)
        if not agree(record["expected"], recorded):
            return failed(f"the draws differ: {recorded!r} instead of {record['expected']!r}")
        return deviates(MEDIAN_RULE)
    statistic = name if name in stats.NAMED_STATISTICS else _function(name)
    if statistic is None:
        return failed(f"no function {name!r}")
    found = stats.bootstrap_stderr(statistic, items, iterations)
    return PASSED if agree(record["expected"], found) else failed(f"{found!r} instead of {record['expected']!r}")


def _judge_call(name: str, record: Mapping[str, Any]) -> Verdict:
    function = _function(name)
    if function is None:
        return failed(f"no function {name!r}")
    args, kwargs = decode(record.get("args", [])), decode(record.get("kwargs", {}))
    try:
        found = plain(function(*args, **kwargs))
    except LmmsEvalError as error:
        return PASSED if "raises" in record else failed(f"refused: {error}")
    if "raises" in record:
        return failed(f"{found!r} instead of {record['raises']}")
    if name == "make_table":
        differences = list(text_differences(record["expected"] or "", found or ""))
        return failed("; ".join(differences)) if differences else PASSED
    tolerance = TEXT_SCORE_REL_TOL if name in _TEXT_SCORES else REL_TOL
    if agree(decode(record["expected"]), found, tolerance):
        return PASSED
    if name == "median":
        return _judge_median(record, found)
    return failed(f"{found!r} instead of {record['expected']!r}")


@line_adapter(
    *(
        f"harness/functions/{stem}.jsonl"
        for stem in (
            "arguments", "concurrency", "filters", "judge", "mcq", "names", "reasoning", "redaction", "sharding",
            "statistics", "table", "task_stderr", "text_metrics",
        )
    )
)  # fmt: skip
def judge(vector: Vector) -> Verdict:
    """Call our function of that name and compare."""
    name = vector.record["function"]
    return _judge_bootstrap(vector.record) if name == "bootstrap_stderr" else _judge_call(name, vector.record)
