"""Generation options without a place."""

from __future__ import annotations

from typing import Any

from lmms_eval.api.generation import TakenOptions
from tests.cases import for_each

TAKEN = TakenOptions(
    frozenset({"max_new_tokens", "temperature", "top_k"}),
    reasons={"n": "one answer"},
    variables=frozenset({"enable_thinking"}),
)


@for_each(
    ("name", "value", "objection"),
    [
        ("temperature", 0.5, ""),
        ("temprature", 0.5, "did you mean 'temperature'?"),
        ("foo_bar", 1, "there is no such option"),
        ("foo_bar", None, ""),
        ("n", 5, "one answer"),
        ("n", 1, ""),
        ("num_beams", 1, ""),
        ("num_beams", 4, "there is no such option"),
        ("use_cache", False, ""),
        ("max_agentic_steps", 3, ""),
        ("chat_template_kwargs", {"enable_thinking": True}, ""),
        (
            "chat_template_kwargs",
            {"enable_thinking": True, "thoughts": 1},
            "the chat template knows no thoughts; its variables are enable_thinking",
        ),
    ],
)
def test_objections(name: str, value: Any, objection: str) -> None:
    assert TAKEN.objection(name, value) == objection


def test_what_nobody_knows_is_forwarded_but_for_what_is_known_to_have_no_place() -> None:
    taken = TakenOptions(TAKEN.names, forwards=True, reasons=TAKEN.reasons)
    assert taken.objection("foo_bar", 1) == ""
    assert taken.objection("chat_template_kwargs", {"any": 1}) == "", "the server knows its template"
    assert taken.objection("n", 5) == "one answer"
