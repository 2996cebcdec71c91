"""Vectors of MEGA-Bench scoring: parsers, conversions, metrics, aggregation. Whole tasks: ``megabench_tasks``."""

from __future__ import annotations

import atexit
import functools
import json
import math
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import LmmsEvalError, TaskError
from lmms_eval.tasks.megabench.conversions import containers, geometry, latex, literals
from lmms_eval.tasks.megabench.metrics import METRICS
from lmms_eval.tasks.megabench.metrics.constraints_verse import (
    is_line_iambic,
    parse_syllable_ranges,
    phones_for_word,
    rhyming_part,
    syllable_totals,
)
from lmms_eval.tasks.megabench.metrics.values import DetailedScore, OutsideData
from lmms_eval.tasks.megabench.scoring.parsers import PARSERS, AnswerShape
from lmms_eval.tasks.megabench.scoring.task_spec import AGGREGATIONS, parse_task_spec
from tests.parity.vectors import DATA_DIR, PASSED, Vector, Verdict, deviates, failed, line_adapter, pending

TOLERANCE = 1e-9

HELPERS: Mapping[str, Callable[[Any], Any]] = {
    "strip_string_quotes": literals.unwrap_string,
    "str_to_list": containers.str_to_list,
    "str_to_set": containers.str_to_set,
    "to_set": containers.to_set,
    "to_dict": containers.to_dict,
    "str_to_bboxes": geometry.str_to_bboxes,
    "str_to_coords": geometry.str_to_coords,
    "parse_point_xml": geometry.parse_point_xml,
    "parse_boxes_xml": geometry.parse_boxes_xml,
    "normalize_latex": latex.normalize_latex,
}
NLTK_DATA = DATA_DIR / "nltk_data"
MANY = 10_000
VERSE_HELPERS: Mapping[str, Callable[[Any], Any]] = {
    "parse_syllable_ranges": lambda value: [list(found) for found in parse_syllable_ranges(value)],
    "count_syllables": lambda line: list(syllable_totals(line, MANY)),
    "phones_for_word": lambda word: list(phones_for_word(word)),
    "rhyming_part": rhyming_part,
    "is_line_iambic": is_line_iambic,
}


def decode(value: Any) -> Any:
    """A value in the encoding of the vectors."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    match list(value.items()):
        case [("__tuple__", items)]:
            return tuple(decode(item) for item in items)
        case [("__set__", items)]:
            return {decode(item) for item in items}
        case [("__float__", text)]:
            return float(text)
        case [("__dict__", pairs)]:
            return {decode(key): decode(item) for key, item in pairs}
    return {key: decode(item) for key, item in value.items()}


def same(got: Any, expected: Any) -> bool:
    """Equality with an absolute tolerance for numbers; NaN equals NaN; lists and tuples differ."""
    if isinstance(got, int | float) and isinstance(expected, int | float):
        if math.isnan(got) or math.isnan(expected):
            return math.isnan(got) and math.isnan(expected)
        return got == expected or math.isclose(got, expected, rel_tol=0, abs_tol=TOLERANCE)
    if type(got) is not type(expected):
        return False
    if isinstance(got, list | tuple):
        return len(got) == len(expected) and all(map(same, got, expected))
    if isinstance(got, dict):
        return got.keys() == expected.keys() and all(same(got[key], expected[key]) for key in got)
    return bool(got == expected)


def compare(got: Any, expected: Any) -> Verdict:
    return PASSED if same(got, expected) else failed(f"got {got!r}, expected {expected!r}")


def expects_error(expected: Any) -> bool:
    return isinstance(expected, dict) and set(expected) == {"error"}


def refused(function: Callable[..., Any], *arguments: Any, error: type[LmmsEvalError] = LmmsEvalError) -> Verdict:
    """Passed if an error of our tree comes out, of this kind."""
    try:
        value = function(*arguments)
    except error:
        return PASSED
    return failed(f"got {value!r} instead of an error")


@line_adapter("megabench/parsers.jsonl")
def parser_line(vector: Vector) -> Verdict:
    """Through the scoring of a task with this parser, where an unknown one is refused and a null reply is read."""
    record, expected = vector.record, decode(vector.record["expected"])
    field = record.get("answer_key", "answer")
    info = {
        "field_score_function": {field: None},
        "aggregation": {"function": "mean", "field_weights": {field: 1}},
        "response_parse_function": record["parser"],
    }
    if expects_error(expected):
        return refused(parse_task_spec, info, "vector", [field], error=TaskError)
    spec = parse_task_spec(info, "vector", [field])
    shape = AnswerShape(field, single_line=record.get("is_single_line_ans", False))
    return compare(PARSERS[spec.parser](record["response"] or "", shape), expected)


@line_adapter("megabench/helpers.jsonl")
def helper_line(vector: Vector) -> Verdict:
    record = vector.record
    if record["helper"] in VERSE_HELPERS:
        return _verse_helper(record)
    helper, argument, expected = HELPERS[record["helper"]], decode(record["arg"]), decode(record["expected"])
    return refused(helper, argument) if expects_error(expected) else compare(helper(argument), expected)


def _verse_helper(record: dict[str, Any]) -> Verdict:
    """The reference lists the sum of every combination of pronunciations, we give each sum once."""
    expected = record["expected"]
    if record["helper"] == "count_syllables":
        expected = sorted(set(expected))
    try:
        return compare(VERSE_HELPERS[record["helper"]](record["arg"]), expected)
    except NotEvaluated as absent:
        return pending(absent.reason)


def outside_data(record: dict[str, Any]) -> OutsideData:
    """The tests' linguistic data and the vector's table of places."""
    table = record.get("geocode_table")
    return OutsideData("" if table is None else str(_table_file(json.dumps(table))), nltk_data=str(NLTK_DATA))


@functools.cache
def _table_file(entries: str) -> Path:
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False, encoding="utf-8") as file:
        file.write(f'{{"complete": true, "entries": {entries}}}')
    atexit.register(os.unlink, file.name)
    return Path(file.name)


@line_adapter("megabench/aggregations.jsonl")
def aggregation_line(vector: Vector) -> Verdict:
    """Through a task of one query whose fields have these scores."""
    record, expected = vector.record, decode(vector.record["expected"])
    scores = decode(record["scores"])
    if expects_error(expected):
        return refused(_aggregate, record["aggregation"], scores, record["weights"])
    return compare(_aggregate(record["aggregation"], scores, record["weights"]), expected)


def _aggregate(name: str | None, scores: dict[str, Any], weights: Any) -> float:
    info = {
        "field_score_function": dict.fromkeys(scores, "exact_str_match"),
        "aggregation": {"function": name, "field_weights": weights},
        "response_parse_function": "json",
    }
    spec = parse_task_spec(info, "vector", list(scores))
    return AGGREGATIONS[spec.aggregation](scores, spec.weights)


@line_adapter("megabench/metrics.jsonl")
def metric_line(vector: Vector) -> Verdict:
    """Through the scorer of a task with this one field, so that exceptions score as they do in a run."""
    record = vector.record
    spec = METRICS[record["metric"]]
    if not spec.path:
        return pending(str(spec.needs))
    target = decode(record["eval_context"] if spec.needs_context else record["correct_answer"])
    expected = decode(record["expected"])
    try:
        score, info, error = _call(spec.name, decode(record["response"]), target, outside_data(record))
    except NotEvaluated as absent:
        return pending(absent.reason)
    if expects_error(expected):
        good = score == 0 and info == error and error is not None
        return deviates("megabench_pair_scorer_error_is_zero") if good else failed(f"got {score!r}, {info!r}")
    if "expected_info" in record and info != decode(record["expected_info"]):
        return failed(f"information {info!r}, expected {record['expected_info']!r}")
    return compare(score, expected)


def _call(metric: str, response: Any, target: Any, data: OutsideData) -> tuple[float, Any, str | None]:
    """Score, information and error text."""
    spec = METRICS[metric]
    try:
        value = spec.load(data)(response, target)
    except NotEvaluated:
        raise
    except Exception as error:  # noqa: BLE001 - as the scorer of a task does
        text = f"{type(error).__name__}: {error}"
        return 0.0, text if spec.gives_info else None, text
    return (value.score, value.info, None) if isinstance(value, DetailedScore) else (value, None, None)
