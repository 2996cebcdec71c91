"""``api=responses``: bodies, answers and failures."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from PIL import Image

from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.request import Response, Usage
from lmms_eval.models.openai.model import OpenAI
from lmms_eval.models.openai.responses import map_responses_generation, parse_response
from lmms_eval.models.remote.errors import AttemptError
from lmms_eval.models.remote.generation import Dialect
from lmms_eval.models.remote.reply import Reply
from tests.cases import for_each
from tests.models.openai.support import ask, make_request
from tests.servers.stub import StubServer

PLAIN = Dialect(1024, is_reasoning=False, is_public=True, is_responses=True)
REASONING = Dialect(1024, is_reasoning=True, is_public=True, is_responses=True, reasoning_effort="low")


def ask_one(server: StubServer, request: Any = None, **arguments: Any) -> Response:
    given = {"model": "m", "base_url": server.url, "retry_backoff_s": 0.01, "max_retries": 2, "api": "responses"}
    return ask(OpenAI(**{**given, **arguments}), [request or make_request("one")])["one"]


@for_each(
    ("options", "fields", "ignored"),
    [
        ({}, {"max_output_tokens": 1024, "temperature": 0}, ()),
        ({"max_new_tokens": 5, "until": ["x"]}, {"max_output_tokens": 5, "temperature": 0}, ()),
        ({"temperature": 0.5, "top_p": 0.9}, {"max_output_tokens": 1024, "temperature": 0.5, "top_p": 0.9}, ()),
        ({"temperature": 0.5, "seed": 3}, {"max_output_tokens": 1024, "temperature": 0.5}, ("seed",)),
        ({"presence_penalty": 1}, {"max_output_tokens": 1024, "temperature": 0}, ("presence_penalty",)),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}},
            {
                "max_output_tokens": 1024,
                "temperature": 0,
                "text": {"format": {"type": "json_schema", "name": "n", "schema": {}}},
            },
            (),
        ),
    ],
)
def test_fields(options: dict[str, Any], fields: dict[str, Any], ignored: tuple[str, ...]) -> None:
    assert map_responses_generation(options, 9, PLAIN) == (fields, ignored)


def test_effort_of_the_task_wins() -> None:
    assert map_responses_generation({}, 0, REASONING)[0] == {
        "max_output_tokens": 1024,
        "reasoning": {"effort": "low"},
    }
    fields, _ = map_responses_generation({"reasoning_effort": "high", "temperature": 1}, 0, REASONING)
    assert fields["reasoning"] == {"effort": "high"} and "temperature" not in fields


def test_messages_and_pictures() -> None:
    picture = Image.new("RGB", (4, 4), (9, 8, 7))
    turns = [
        {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "user", "content": [{"type": "image", "url": picture}, {"type": "text", "text": "What?"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Blue."}]},
        {"role": "user", "content": [{"type": "text", "text": "Sure? ANSWER=yes END"}]},
    ]
    request = make_request(
        "one", messages=ChatMessages.model_validate({"messages": turns}), generation={"until": ["END"]}
    )
    with StubServer() as server:
        response = ask_one(server, request)
        head, body = server.heads()[0], server.bodies()[0]
    assert head.startswith("POST /v1/responses ")
    assert response.text == "yes " and response.finish_reason == "stop"
    assert body["store"] is False and "stop" not in body and "messages" not in body
    assert [turn["role"] for turn in body["input"]] == ["system", "user", "assistant", "user"]
    image, text = body["input"][1]["content"]
    assert image["type"] == "input_image" and image["image_url"].startswith("data:image/png;base64,")
    assert text == {"type": "input_text", "text": "What?"}
    assert body["input"][2]["content"] == [{"type": "output_text", "text": "Blue."}]


def test_usage_and_reasoning() -> None:
    with StubServer(fault="reasoning") as server:
        response = ask_one(server)
    assert response.text == "" and response.finish_reason == "stop"
    assert response.usage is not None and response.usage.reasoning_tokens == 7


@for_each(
    ("fault", "text", "finish"),
    [
        ("truncated", "cut o", "length"),
        ("content_filter", "", "content_filter"),
        ("refusal", "I cannot help with that.", "content_filter"),
        ("parts", "parts", "stop"),
        ("empty", "", "stop"),
    ],
)
def test_endings(fault: str, text: str, finish: str) -> None:
    with StubServer(fault=fault) as server:
        response = ask_one(server)
    assert (response.text, response.finish_reason, response.error) == (text, finish, None)


@for_each(
    ("fault", "kind", "attempts"),
    [
        ("500", "server_error", 3),
        ("429", "rate_limit", 3),
        ("401", "auth", 1),
        ("policy", "refused", 1),
        ("context_length", "bad_request", 1),
        ("malformed", "malformed", 3),
        ("no_choices", "malformed", 3),
        ("reset", "connection", 3),
    ],
)
def test_failures(fault: str, kind: str, attempts: int) -> None:
    with StubServer(fault=fault) as server:
        response = ask_one(server)
        assert server.stats()["total"] == attempts
    assert response.error is not None and response.error.kind == kind


@for_each(
    ("body", "kind"),
    [
        ({"status": "failed", "error": {"code": "server_error", "message": "m"}}, "server_error"),
        ({"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "m"}}, "rate_limit"),
        ({"status": "failed", "error": {"code": "invalid_image", "message": "m"}}, "bad_request"),
        ({"status": "in_progress", "output": []}, "malformed"),
        ({"status": "completed", "output": [{"type": "message", "content": 7}]}, "malformed"),
        ([], "malformed"),
    ],
)
def test_answers_that_are_none(body: Any, kind: str) -> None:
    with pytest.raises(AttemptError) as caught:
        parse_response(orjson.dumps(body), "u")
    assert caught.value.kind == kind


def test_counts_of_other_types_are_unknown() -> None:
    body = {"status": "completed", "output": [], "usage": {"input_tokens": "3", "output_tokens": 4}}
    assert parse_response(orjson.dumps(body), "u") == Reply("", "stop", Usage(None, 4, None))
