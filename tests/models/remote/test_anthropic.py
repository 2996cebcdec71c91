"""The back end ``anthropic``: the real package against a server that speaks the Messages form."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lmms_eval.api.messages import ChatMessages
from lmms_eval.errors import MediaError
from tests.media.draw import write_video
from tests.models.openai.support import make_request
from tests.models.remote.dialects import ANTHROPIC
from tests.servers.stub import StubServer


@pytest.fixture(autouse=True, scope="module")
def _package() -> None:
    """Imported by the process that runs these tests alone."""
    ANTHROPIC.need()


def payload(request: Any, **arguments: Any) -> dict[str, Any]:
    call: dict[str, Any] = ANTHROPIC.build(**arguments).prepare(request).payload
    return call


def test_system_prompt_options_and_thinking() -> None:
    turns = [
        {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "user", "content": [{"type": "text", "text": " "}, {"type": "text", "text": "What? ANSWER=a b"}]},
    ]
    messages = ChatMessages.model_validate({"messages": turns})
    options = {"max_new_tokens": 9, "temperature": 1.5, "until": ["END", "\n\n"], "top_k": 4, "min_p": 0.1}
    request = make_request("one", messages=messages, generation=options)
    with StubServer() as server:
        model = ANTHROPIC.build(server, reasoning_effort="low")
        assert ANTHROPIC.ask(model, [request])["one"].text == "a b"
        body = server.bodies()[0]
        assert ANTHROPIC.ask_one(server, request, thinking_budget=2048).text == "a b"
        thinking = server.bodies()[1]
    assert body["system"] == "Be brief." and body["stop_sequences"] == ["END"] and body["max_tokens"] == 9
    assert body["temperature"] == 1.0 and body["top_k"] == 4 and body["output_config"] == {"effort": "low"}
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "What? ANSWER=a b"}]}]
    assert model.describe()["ignored_generation_options"] == ["min_p", "seed"]
    assert thinking["thinking"] == {"type": "enabled", "budget_tokens": 2048}
    assert thinking["max_tokens"] == 9 + 2048 and "temperature" not in thinking
    assert "temperature" not in payload(request, sampling_options=False).get("extra_body", {})


def test_a_stop_string_of_white_space_ends_the_answer_here() -> None:
    request = make_request("one", "ANSWER=first\n\nsecond", generation={"until": ["\n\n"]})
    with StubServer() as server:
        response = ANTHROPIC.ask_one(server, request)
        assert "stop_sequences" not in server.bodies()[0]
    assert (response.text, response.finish_reason) == ("first", "stop")


def decoded(block: dict[str, Any]) -> Image.Image:
    assert block["type"] == "image" and block["source"]["type"] == "base64"
    return Image.open(io.BytesIO(base64.b64decode(block["source"]["data"])))


def test_pictures_fit_the_limits_of_the_service() -> None:
    one = payload(make_request("one", visuals=[Image.new("RGB", (8100, 20))]))["messages"][0]["content"]
    assert max(decoded(one[0]).size) == 8000
    many = payload(make_request("one", visuals=[Image.new("RGB", (2500, 10))] * 21))["messages"][0]["content"]
    assert [max(decoded(block).size) for block in many[:-1]] == [2000] * 21
    noise = Image.effect_noise((1200, 1200), 90)
    call = payload(make_request("one", visuals=[noise]), max_image_bytes=100_000)
    assert len(call["messages"][0]["content"][0]["source"]["data"]) <= 100_000 * 4 / 3 + 4


def test_pictures_arrive(tmp_path: Path) -> None:
    path = write_video(tmp_path / "film.mp4", 12)
    with StubServer() as server:
        response = ANTHROPIC.ask_one(server, make_request("one", visuals=[str(path)]), max_frames_num=3)
        content = server.bodies()[0]["messages"][0]["content"]
    assert response.text == "one" and [block["type"] for block in content] == ["image"] * 3 + ["text"]


def test_sound_is_refused() -> None:
    sound = {"array": [0.0] * 800, "sampling_rate": 8000}
    with pytest.raises(MediaError, match="takes no sound"):
        payload(make_request("one", visuals=[sound]))


def test_long_answers_need_no_streaming() -> None:
    with StubServer() as server:
        response = ANTHROPIC.ask_one(server, make_request("one", generation={"max_new_tokens": 64_000}))
    assert response.text == "one"


def test_what_the_service_takes_of_generation_options() -> None:
    request = make_request("one", generation={"max_new_tokens": 9, "extra_body": {"metadata": {"user_id": "x"}}})
    model = ANTHROPIC.build()
    assert payload(request)["extra_body"] == {"temperature": 0, "metadata": {"user_id": "x"}}
    taken = model.generation_options()
    assert taken.objection("top_k", 3) == "" and taken.objection("extra_body", {}) == ""
    assert "seed" in taken.objection("seed", 1) and taken.objection("foo_bar", 1)
    assert "sampling" in ANTHROPIC.build(thinking_budget=2048).generation_options().objection("temperature", 0.5)
    sent = model.sent_with(request)
    assert sent["options"]["max_tokens"] == 9 and "messages" not in sent["options"]
