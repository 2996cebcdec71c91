"""Reading completions: property test over broken ones."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval.api.request import Usage
from lmms_eval.models.openai.errors import AttemptError
from lmms_eval.models.openai.reply import Reply, cut_at, parse_reply


def reply_bytes(message: Any, usage: Any = None, finish: Any = "stop") -> bytes:
    return orjson.dumps({"choices": [{"message": message, "finish_reason": finish}], "usage": usage})


def test_usage() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 2}}
    assert parse_reply(reply_bytes({"content": "x"}, usage), "u") == Reply("x", "stop", Usage(3, 5, 2))
    assert parse_reply(reply_bytes({"content": "x"}, {"prompt_tokens": "3"}), "u").usage == Usage()
    assert parse_reply(reply_bytes({"content": "x"}, [1], None), "u") == Reply("x", None, None)


def test_reasoning_beside_content_is_left_out() -> None:
    message = {"content": "B", "reasoning_content": "it may be A"}
    assert parse_reply(reply_bytes(message), "u") == Reply("B", "stop", None)


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_reasoning_alone_is_the_text_if_it_ended(name: str) -> None:
    message = {"content": None, name: "so B"}
    assert parse_reply(reply_bytes(message), "u") == Reply("so B", "stop", None, from_reasoning=True)
    assert parse_reply(reply_bytes(message, finish="length"), "u") == Reply("", "length", None)


def test_tool_calls_without_text() -> None:
    assert parse_reply(reply_bytes({"tool_calls": []}, finish="tool_calls"), "u") == Reply("", "tool_calls", None)


def test_cut_at_the_first_stop() -> None:
    reply = Reply("one two three", "length", None)
    assert cut_at(reply, ["three", "two"]) == Reply("one ", "stop", None)
    assert cut_at(reply, ["four"]) is reply


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**31), 2**31) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["choices", "message", "content", "error", "code", "usage", "refusal", "finish_reason"]),
            inner,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(JSON | st.builds(lambda message: {"choices": [{"message": message}]}, JSON))
def test_any_json_is_a_reply_or_an_attempt_error(value: Any) -> None:
    try:
        reply = parse_reply(orjson.dumps(value), "u")
    except AttemptError:
        return
    assert isinstance(reply.text, str) and isinstance(value, dict) and value["choices"][0]["message"] is not None


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=40))
def test_any_bytes_are_a_reply_or_an_attempt_error(value: bytes) -> None:
    with pytest.raises(AttemptError) as caught:
        parse_reply(value, "u")
    assert caught.value.kind in ("malformed",)
