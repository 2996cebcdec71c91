"""Variables of chat templates."""

from __future__ import annotations

from types import SimpleNamespace

from lmms_eval.models.chat_template import template_digest, template_of, template_options, template_variables

THINKS = (
    "{%- set ns = namespace(seen=false) %}{% for message in messages %}{{ message.content }}"
    "{% generation %}{{ bos_token }}{% endgeneration %}{% endfor %}"
    "{% if enable_thinking is defined and enable_thinking %}<think>{{ reasoning_effort }}{% endif %}"
    "{% if add_generation_prompt %}A:{% endif %}"
)


def test_variables_are_what_a_caller_may_set() -> None:
    assert template_variables(THINKS) == {"enable_thinking", "reasoning_effort"}
    assert template_variables("{% if %}") == frozenset(), "what cannot be parsed has none that we know"


def test_options_of_a_request() -> None:
    variables = template_variables(THINKS)
    generation = {
        "temperature": 1,
        "enable_thinking": True,
        "chat_template_kwargs": {"enable_thinking": False, "reasoning_effort": "low", "unknown": 1},
    }
    assert template_options(generation, variables) == {"enable_thinking": False, "reasoning_effort": "low"}
    assert template_options({"temperature": 1}, variables) == {}


def test_the_template_in_use() -> None:
    tokenizer = SimpleNamespace(chat_template={"default": "b", "tools": "c"})
    assert template_of(SimpleNamespace(tokenizer=tokenizer)) == "b"
    assert template_of(SimpleNamespace(chat_template="a", tokenizer=tokenizer)) == "a"
    assert template_of(tokenizer, "stated") == "stated"
    assert template_of(SimpleNamespace()) == "" and template_digest("") is None
