from __future__ import annotations

import json

from hypothesis import given

from lmms_eval.tasks.megabench.scoring.query import LONGEST, ReplyReading, parse_reply, read_reply, score_query
from lmms_eval.tasks.megabench.scoring.task_spec import TaskSpec, parse_task_spec
from tests.cases import for_each
from tests.tasks.megabench.fuzzing import FUZZ, NASTY, cpu_limit, reply_text


def spec_of(parser: str, *fields: str) -> TaskSpec:
    info = {
        "field_score_function": dict.fromkeys(fields, "exact_str_match"),
        "aggregation": {"function": "mean", "field_weights": dict.fromkeys(fields, 1)},
        "response_parse_function": parser,
    }
    return parse_task_spec(info, "task", fields)


def read(reply: str, parser: str, *fields: str) -> ReplyReading:
    spec = spec_of(parser, *fields)
    return read_reply(reply, parse_reply(reply, dict.fromkeys(fields, "x"), spec), parser, fields)


@for_each(
    ("reply", "rule", "extracted"),
    [
        ("because\nAnswer: B", "marker", "B"),
        ("Answer: ```\nB\n```", "marker, code block", "B"),
        ("B", "whole reply", "B"),
        ("```\nB\n```\nfoo ```x```", "whole reply, code block", "B"),
        ("**Answer:** B", "unparsed", None),
        (" \n", "no answer", None),
        ("Answer:", "unparsed", None),
    ],
)
def test_texts(reply: str, rule: str, extracted: str | None) -> None:
    found = read(reply, "answer_string", "a")
    assert found.rule == rule
    if extracted is not None:
        assert (found.extracted, found.missing) == ({"a": extracted}, ())


@for_each(
    ("reply", "rule", "missing", "extracted"),
    [
        ('Answer: {"a": 1, "b": [2]}', "marker", (), {"a": "1", "b": "[2]"}),
        ('so {"a": "x", "b": "y"}', "whole reply", (), {"a": "x", "b": "y"}),
        ('```json\n{"a": "x", "b": "y"}\n```', "whole reply, code block", (), {"a": "x", "b": "y"}),
        ('Answer: {"a": "x", "c": 3}', "marker, fields missing", ("b",), {"a": "x"}),
        ('Answer: {"c": 3}', "unparsed", ("a", "b"), {}),
        ("Answer: x, y", "unparsed", ("a", "b"), {}),
        ("Answer: [1]", "unparsed", ("a", "b"), {}),
        ("", "no answer", ("a", "b"), {}),
    ],
)
def test_structures(reply: str, rule: str, missing: tuple[str, ...], extracted: dict[str, str]) -> None:
    found = read(reply, "json", "a", "b")
    assert (found.rule, found.missing, found.extracted) == (rule, missing, extracted)


def test_long_values_are_cut_and_nothing_is_said_twice() -> None:
    found = read("Answer: " + "x" * 999, "answer_string", "a").as_dict()
    assert len(found["extracted"]["a"]) == LONGEST
    assert set(found) == {"rule", "extracted"}
    assert read("", "json", "a").as_dict() == {"rule": "no answer", "missing": ["a"]}


def test_the_score_tells_its_reading_and_result_files_do_not() -> None:
    outcome = score_query("Answer: x", {"a": "x"}, spec_of("answer_string", "a"), {})
    assert outcome.query == 1.0
    assert outcome.reading == ReplyReading("marker", (), {"a": "x"})
    assert "reading" not in json.dumps(outcome.as_dict())


def of_any_parser(reply: str) -> None:
    for parser in ("answer_string", "ascii_answer_string", "verbatim_answer_string", "json"):
        with cpu_limit():
            json.dumps(read(reply, parser, "a").as_dict())
    with cpu_limit():
        assert read_reply(reply, reply.strip(), "dummy", ("a",)).rule in ("whole reply", "no answer")


@FUZZ
@given(reply_text)
def test_any_reply_is_read(reply: str) -> None:
    of_any_parser(reply)


@for_each("name", NASTY)
def test_hard_replies_are_read_in_time(name: str) -> None:
    of_any_parser(NASTY[name])
