"""Pictures in answers: chat completions of several gateways, and the Responses form."""

from __future__ import annotations

import base64
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval.api.interleaved import generated_image
from lmms_eval.api.request import Response
from lmms_eval.models.openai.model import OpenAI
from lmms_eval.models.openai.responses import parse_response
from lmms_eval.models.remote.asking import to_response
from lmms_eval.models.remote.errors import AttemptError
from lmms_eval.models.remote.reply import Reply, parse_reply, read_completion
from lmms_eval.models.remote.stops import Stops
from tests.cases import for_each
from tests.models.openai.support import ask, make_request
from tests.painting import png
from tests.servers.dialects import PIXEL
from tests.servers.stub import StubServer

IMAGE = generated_image(png(1))
CODE = base64.b64encode(png(1)).decode()
URL = f"data:image/png;base64,{CODE}"


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


def image(url: Any = URL, kind: str = "image_url") -> dict[str, Any]:
    return {"type": kind, "image_url": url}


def chat(message: Any) -> Reply:
    return parse_reply(orjson.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}), "u")


def responses(*output: Any) -> Reply:
    return parse_response(orjson.dumps({"status": "completed", "output": output}), "u")


def call(result: Any, **more: Any) -> dict[str, Any]:
    return {"type": "image_generation_call", "status": "completed", "result": result, **more}


def message(*content: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "content": list(content)}


@for_each(
    ("said", "parts"),
    [
        ({"content": "look:", "images": [image({"url": URL})]}, ("look:", IMAGE)),
        ({"content": "look:", "images": [{"image_url": {"url": URL}}]}, ("look:", IMAGE)),
        ({"content": None, "images": [image({"url": URL})] * 2}, (IMAGE, IMAGE)),
        ({"content": "", "images": [image({"url": URL})], "refusal": None}, (IMAGE,)),
        ({"content": [text("a"), image({"url": URL}), text("b")]}, ("a", IMAGE, "b")),
        ({"content": [image(URL, "output_image"), text("b")]}, (IMAGE, "b")),
        ({"content": "plain", "images": []}, ()),
        ({"content": [text("plain")], "images": None}, ()),
    ],
)
def test_messages_with_pictures(said: Any, parts: Any) -> None:
    reply = chat(said)
    assert reply.parts == parts and reply.finish_reason == "stop"
    if parts:
        assert reply.text == "".join(part for part in parts if isinstance(part, str))
        assert all(isinstance(part, str) or part.data == png(1) for part in reply.parts)
    else:
        assert reply.text == "plain"


@for_each(
    ("url", "told"),
    [
        ("https://example.org/x.png", "not included"),
        ("/etc/hostname", "not included"),
        (None, "not included"),
        ({"url": None}, "not included"),
        ("data:image/png;base64,****", "valid base64"),
        ("data:image/png", "comma"),
        (f"data:image/png;base64,{base64.b64encode(b'<svg/>').decode()}", "no PNG, JPEG, WebP or GIF"),
    ],
)
def test_what_is_no_picture_is_malformed(url: Any, told: str) -> None:
    with pytest.raises(AttemptError, match=told) as caught:
        chat({"content": "x", "images": [image(url)]})
    assert caught.value.kind == "malformed" and caught.value.retry


def test_the_type_is_told_by_the_bytes_not_by_the_address() -> None:
    reply = chat({"content": "x", "images": [image(f"data:image/jpeg;base64,{CODE}")]})
    assert reply.parts == ("x", IMAGE)


def test_calls_of_the_responses_form() -> None:
    reply = responses(message({"type": "output_text", "text": "a"}), call(CODE), {"type": "reasoning"})
    assert (reply.parts, reply.text, reply.finish_reason) == (("a", IMAGE), "a", "stop")
    assert responses(call(CODE)).parts == (IMAGE,)
    assert responses(call(None, status="failed"), message({"type": "output_text", "text": "no"})).parts == ()
    refused = responses(message({"type": "refusal", "refusal": "I will not"}))
    assert (refused.text, refused.finish_reason, refused.parts) == ("I will not", "content_filter", ())


@for_each(("result", "told"), [("****", "not base64"), (7, "not base64"), ("PHN2Zy8+", "no PNG")])
def test_malformed_calls(result: Any, told: str) -> None:
    with pytest.raises(AttemptError, match=told) as caught:
        responses(call(result))
    assert caught.value.kind == "malformed"


def test_a_stop_string_cuts_pictures_behind_it_too() -> None:
    reply = Reply.of_parts([IMAGE, "one STOP two", IMAGE], "length", None)
    stops = Stops(("STOP",), ("STOP",))
    cut = to_response(make_request("one"), reply, stops, 1, None)
    assert (cut.text, cut.parts, cut.finish_reason) == ("one ", (IMAGE, "one "), "stop")
    cut = to_response(make_request("one"), Reply.of_parts(["STOP", IMAGE], "stop", None), stops, 1, None)
    assert (cut.text, cut.parts, cut.ended_by) == ("", (), "STOP")


PIECE = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["text", "image_url", "output_image", "image_generation_call", "message", None]),
        "text": st.sampled_from(["x", None, 7]),
        "image_url": st.sampled_from([URL, {"url": URL}, {"url": 7}, "data:,", "data:image/png;base64,é", None]),
        "result": st.sampled_from([CODE, "ä", None, 7]),
        "content": st.just([text("x")]),
    },
)


@settings(max_examples=150, deadline=None)
@given(
    st.none() | st.text(max_size=2) | st.lists(PIECE, max_size=3), st.none() | st.just(7) | st.lists(PIECE, max_size=2)
)
def test_any_message_is_a_reply_or_malformed(content: Any, images: Any) -> None:
    body = {"choices": [{"message": {"content": content, "images": images}}]}
    items = content if isinstance(content, list) else []
    kinds = set()
    for read in (lambda: read_completion(body, b"", "u"), lambda: responses(*items)):
        try:
            reply = read()
        except AttemptError as error:
            kinds.add(error.kind)
        else:
            assert not reply.parts or reply.text == "".join(part for part in reply.parts if isinstance(part, str))
    assert kinds <= {"malformed"}


def test_over_the_wire() -> None:
    with StubServer(fault="pictures") as server:
        model = OpenAI(model="m", base_url=server.url, max_retries=0)
        found = ask(model, [make_request("one")])["one"]
    pixel = generated_image(base64.b64decode(PIXEL))
    assert found.parts == ("before ", pixel, "after")
    assert (found.text, found.error) == ("before after", None)
    assert found == Response.interleaved(
        "one", found.parts, finish_reason="stop", usage=found.usage, latency=found.latency, model="m"
    )
