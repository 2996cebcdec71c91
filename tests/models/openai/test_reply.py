"""Reading completions: property test over broken ones."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval.api.request import Usage
from lmms_eval.models.openai.body import parse_completion
from lmms_eval.models.remote.asking import to_response
from lmms_eval.models.remote.errors import AttemptError
from lmms_eval.models.remote.reply import Reply, parse_reply
from lmms_eval.models.remote.stops import Stops
from tests.cases import for_each
from tests.models.openai.support import make_request


def reply_bytes(message: Any, usage: Any = None, finish: Any = "stop") -> bytes:
    return orjson.dumps({"choices": [{"message": message, "finish_reason": finish}], "usage": usage})


def test_usage() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 2}}
    assert parse_reply(reply_bytes({"content": "x"}, usage), "u") == Reply("x", "stop", Usage(3, 5, 2))
    assert parse_reply(reply_bytes({"content": "x"}, {"prompt_tokens": "3"}), "u").usage == Usage()
    assert parse_reply(reply_bytes({"content": "x"}, [1], None), "u") == Reply("x", None, None)


@for_each(
    ("text", "reasoning", "told", "wanted"),
    [
        ("B", "it may be A", 0, None),
        ("<think>it may be A</think>B", "", 0, None),
        ("<think>it may be A", "", 0, None),
        ("B", "it may be A", 4, 4),
        ("B", "", 0, 0),
        ("<think>\n\n</think>\n\nB", "", 0, 0),
    ],
)
def test_no_tokens_of_thoughts_beside_thoughts_are_an_unknown_count(
    text: str, reasoning: str, told: int, wanted: int | None
) -> None:
    reply = Reply(text, "stop", Usage(3, 9, told), reasoning)
    assert to_response(make_request("one"), reply, Stops((), ()), 1, None).usage == Usage(3, 9, wanted)


@for_each(
    "fields",
    [
        {"reasoning_content": "it may be A"},
        {"reasoning": "it may be A"},
        {"reasoning_content": None, "reasoning": "it may be A"},
        {"thinking": "it may be A"},
        {"reasoning": {"content": "it may be A"}},
        {"reasoning": [{"type": "text", "text": "it may be A"}]},
        {"reasoning": {"summary": [{"type": "summary_text", "text": "it may be A"}]}},
        {"reasoning_details": [{"type": "reasoning.text", "text": "it may be A"}]},
        {"thinking_blocks": [{"type": "thinking", "thinking": "it may be A", "signature": "x"}]},
    ],
)
def test_reasoning_is_apart_from_the_text(fields: dict[str, Any]) -> None:
    reasoning = "it may be A"
    for content, finish in [("B", "stop"), (None, "stop"), ("", "length")]:
        found = parse_reply(reply_bytes({"content": content, **fields}, finish=finish), "u")
        assert found == Reply(content or "", finish, None, reasoning)


def test_parts_of_the_content_that_are_thoughts_are_apart_from_the_text() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "it may"}, {"type": "text", "text": "be A"}]}
    found = parse_reply(reply_bytes({"content": [thinking, {"type": "text", "text": "B"}]}), "u")
    assert (found.text, found.reasoning) == ("B", "it may\n\nbe A")
    deep: Any = "x"
    for _ in range(50):
        deep = [deep]
    assert parse_reply(reply_bytes({"content": "B", "reasoning": deep}), "u").reasoning == ""


@for_each(
    ("told", "wanted"),
    [({}, None), ({"stop_reason": None}, ""), ({"stop_reason": 7}, ""), ({"stop_reason": "Q:"}, "Q:"),
     ({"matched_stop": "Q:"}, "Q:"), ({"matched_stop": 151645}, "")],
)  # fmt: skip
def test_servers_say_which_stop_string_ended_an_answer(told: dict[str, Any], wanted: str | None) -> None:
    choice = {"message": {"content": "x"}, "finish_reason": "stop", **told}
    assert parse_reply(orjson.dumps({"choices": [choice]}), "u").ended_by == wanted


def test_tool_calls_without_text() -> None:
    assert parse_reply(reply_bytes({"tool_calls": []}, finish="tool_calls"), "u") == Reply("", "tool_calls", None)


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


@for_each(
    ("raw", "text"),
    [
        (b'\xef\xbb\xbf{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}', "x"),
        (b'{"choices":[{"message":{"content":"cut \\ud83d"},"finish_reason":"stop"}]}', "cut \ufffd"),
        (b'{"choices":[{"message":{"content":"cut \xed\xa0\xbd"},"finish_reason":"stop"}]}', "cut \ufffd"),
        (b'{"choices":[{"message":{"content":"\\ud83d\\ude00 \\ude00"},"finish_reason":"stop"}]}', "\U0001f600 \ufffd"),
    ],
    ids=["byte order mark", "half a pair", "half a pair as bytes", "a pair and a half"],
)
def test_what_a_server_sends_again_and_again_is_repaired(raw: bytes, text: str) -> None:
    assert parse_reply(raw, "u") == Reply(text, "stop", None)


@for_each("raw", [b"\xef\xbb\xbf", b'{"a": "\\ud83d', b"[" * 100_000, b'{"choices": "\xff"}'])
def test_what_is_no_json_stays_malformed(raw: bytes) -> None:
    with pytest.raises(AttemptError, match="no JSON") as raised:
        parse_reply(raw, "u")
    assert raised.value.kind == "malformed"


def test_the_choice_of_index_0_is_taken_wherever_it_stands() -> None:
    choices = [{"index": number, "message": {"content": str(number)}, "finish_reason": "stop"} for number in (1, 0)]
    assert parse_reply(orjson.dumps({"choices": choices}), "u").text == "0"
    for choice in choices:
        del choice["index"]
    assert parse_reply(orjson.dumps({"choices": choices}), "u").text == "1"


def test_an_answer_that_ended_with_an_error_is_none() -> None:
    choice = {"message": {"content": "half an ans"}, "finish_reason": "error", "error": {"message": "no memory"}}
    with pytest.raises(AttemptError, match="no memory") as raised:
        parse_reply(orjson.dumps({"choices": [choice]}), "u")
    assert (raised.value.kind, raised.value.retry) == ("server_error", True)


@for_each(
    ("choice", "kind"),
    [
        ({"finish_reason": "abort"}, "server_error"),
        ({"finish_reason": "ABORT"}, "server_error"),
        ({"finish_reason": None, "error": "out of blocks"}, "server_error"),
        ({"finish_reason": "stop", "error": {"message": "half"}}, "server_error"),
        ({"finish_reason": "stop", "error": {"code": 429, "message": "slow down"}}, "rate_limit"),
        ({"finish_reason": "stop", "error": {"code": "400", "message": "no"}}, "bad_request"),
    ],
)
def test_an_answer_that_was_broken_off_is_a_failure(choice: dict[str, Any], kind: str) -> None:
    for content in ({"message": {"content": "half"}}, {"text": "half"}):
        parse = parse_reply if "message" in content else parse_completion
        with pytest.raises(AttemptError) as raised:
            parse(orjson.dumps({"choices": [{**content, **choice}]}), "u")
        assert raised.value.kind == kind


@for_each("word", ["length", "LENGTH", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length"])
def test_every_word_for_the_limit_of_tokens_is_length(word: str) -> None:
    assert parse_reply(reply_bytes({"content": "x"}, finish=word), "u").finish_reason == "length"
    assert (
        parse_completion(orjson.dumps({"choices": [{"text": "x", "finish_reason": word}]}), "u").finish_reason
        == "length"
    )


def test_the_model_that_was_served() -> None:
    choices = [{"message": {"content": "x"}}]
    assert parse_reply(orjson.dumps({"choices": choices, "model": "m-2026"}), "u").model == "m-2026"
    assert parse_reply(orjson.dumps({"choices": choices, "model": 7}), "u").model is None
