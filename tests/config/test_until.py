from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.config import build_config, parse_flags
from lmms_eval.config.convert import StoppingRule, stopping_rules
from lmms_eval.errors import ConfigError
from tests.cases import for_each

HALF = StoppingRule("halfwidth<=0.01", "halfwidth", 0.01)


@for_each(
    ("text", "rules"),
    [
        ("", ()),
        ("halfwidth<=0.01", (HALF,)),
        (" halfwidth <= 0.01 ", (HALF,)),
        ("halfwidth<=1%", (StoppingRule("halfwidth<=1%", "halfwidth", 0.01, is_share=True),)),
        ("decided:0.5", (StoppingRule("decided:0.5", "decided", 0.5),)),
        ("decided:50%", (StoppingRule("decided:50%", "decided", 0.5, is_share=True),)),
        ("decided:out/a.jsonl", (StoppingRule("decided:out/a.jsonl", "decided", baseline="out/a.jsonl"),)),
        ("decided:hf://me/runs", (StoppingRule("decided:hf://me/runs", "decided", baseline="hf://me/runs"),)),
        ("decided:mine:mme", (StoppingRule("decided:mine:mme", "decided", baseline="mine:mme"),)),
        ("mme: decided:mine:mme", (StoppingRule("decided:mine:mme", "decided", baseline="mine:mme", target="mme"),)),
        (
            "a:halfwidth<=0.1; decided:0.5",
            (
                StoppingRule("halfwidth<=0.1", "halfwidth", 0.1, target="a"),
                StoppingRule("decided:0.5", "decided", 0.5),
            ),
        ),
    ],
)
def test_rules(text: str, rules: tuple[StoppingRule, ...]) -> None:
    assert stopping_rules(text) == rules


@for_each(
    ("text", "message"),
    [
        ("halfwidth<=0", "the half-width is a number above 0"),
        ("halfwidth<=-1%", "the half-width is a number above 0"),
        ("halfwidth<=nan", "the half-width is a number above 0"),
        ("halfwidth<0.1", "is not a rule"),
        ("halfwidth", "is not a rule"),
        ("decided:", "is not a rule"),
        ("better", "is not a rule"),
        (": halfwidth<=0.1", "names no task or group"),
        ("mme: sure", "is not a rule"),
        ("a: decided:1; a: halfwidth<=0.1", "'a' has 2 rules"),
        ("decided:1; halfwidth<=0.1", "every task has 2 rules"),
        ("decided:1;", "is not a rule"),
    ],
)
def test_what_is_no_rule_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        stopping_rules(text)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        rules = stopping_rules(text)
    except ConfigError:
        return
    assert all((rule.bound is None) == bool(rule.baseline) for rule in rules)


def test_rules_may_be_given_one_by_one() -> None:
    given_flags = parse_flags(["--until", "a: halfwidth<=0.1", "--until", "b: decided:0.5"])
    config = build_config({**given_flags, "tasks": "a,b"}, {})
    assert [rule.target for rule in stopping_rules(str(config.until))] == ["a", "b"]
    assert build_config({"tasks": "a", "until": ["halfwidth<=0.1"]}, {}).until == "halfwidth<=0.1"


@for_each(
    ("options", "message"),
    [
        ({"order": "cost", "until": "decided:1"}, "leave --order cost out"),
        ({"predict_only": True, "output_path": "o", "until": "decided:1"}, "--until needs scores"),
        ({"ablate": "no-media", "until": "decided:1"}, "--until does not go with --ablate"),
        ({"permute_choices": 4, "until": "decided:1"}, "--until does not go with --permute_choices"),
        ({"order": "shuffled"}, "--order: choose one of cost, random"),
        ({"until": "sure"}, "--until: 'sure' is not a rule"),
        ({"until": 3}, "--until: '3' is not a rule"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build_config({"tasks": "a", **options}, {})
