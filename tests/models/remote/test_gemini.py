"""The back end ``gemini``: the real package against a server that speaks the ``generateContent`` form."""

from __future__ import annotations

import base64
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image

from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.request import GeneratedImage
from lmms_eval.errors import ModelError
from lmms_eval.models.remote.errors import AttemptError
from tests.media.draw import tone, write_talkie, write_video
from tests.models.openai.support import make_request
from tests.models.remote.dialects import GEMINI
from tests.servers.dialects import PIXEL
from tests.servers.stub import StubServer


@pytest.fixture(autouse=True, scope="module")
def _package() -> None:
    """Imported by the process that runs these tests alone."""
    GEMINI.need()


def test_system_prompt_and_options() -> None:
    turns = [
        {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "user", "content": [{"type": "text", "text": "One?"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "1"}]},
        {"role": "user", "content": [{"type": "text", "text": "Two? ANSWER=2 f 3"}]},
    ]
    options = {"max_new_tokens": 9, "temperature": 0.5, "until": [*"abcde", " f"], "top_k": 4, "min_p": 0.1}
    messages = ChatMessages.model_validate({"messages": turns})
    request = make_request("one", messages=messages, generation=options, seed=77)
    with StubServer() as server:
        model = GEMINI.build(server, reasoning_effort="low", thinking_budget=64)
        assert GEMINI.ask(model, [request])["one"].text == "2"
        body = server.bodies()[0]
    config = body["generationConfig"]
    assert config["stopSequences"] == list("abcde") and config["topK"] == 4 and config["seed"] == 77
    assert config["temperature"] == 0.5 and config["maxOutputTokens"] == 9
    assert sorted(map(str, config["thinkingConfig"].values())) == ["64", "LOW", "True"]
    assert body["systemInstruction"]["parts"][0]["text"] == "Be brief."
    assert [turn["role"] for turn in body["contents"]] == ["user", "model", "user"]
    assert model.describe()["ignored_generation_options"] == ["min_p"]


def media_of(server: StubServer) -> list[tuple[str, bytes]]:
    parts = server.bodies()[0]["contents"][0]["parts"]
    inline = [part["inlineData"] for part in parts if "inlineData" in part]
    # The package sends inner names in either form; the service takes both.
    return [
        (item.get("mimeType") or item["mime_type"], base64.b64decode(item["data"], altchars=b"-_")) for item in inline
    ]


def test_frames_are_followed_by_the_sound_of_their_video(tmp_path: Path) -> None:
    request = make_request("one", visuals=[str(write_talkie(tmp_path / "loud.mkv"))])
    with StubServer() as server:
        GEMINI.ask_one(server, request, use_audio_in_video=True, max_frames_num=2)
        assert [mime for mime, _ in media_of(server)] == ["image/png", "image/png", "audio/wav"]


def test_pictures_sound_and_frames(tmp_path: Path) -> None:
    film = write_video(tmp_path / "film.mp4", 12)
    sound = {"array": tone(), "sampling_rate": 8000}
    request = make_request("one", visuals=[Image.new("RGB", (9, 9)), sound, str(film)])
    with StubServer() as server:
        assert GEMINI.ask_one(server, request, max_frames_num=3).text == "one"
        media = media_of(server)
    assert [mime for mime, _ in media] == ["image/png", "audio/wav", "image/png", "image/png", "image/png"]
    assert media[0][1].startswith(b"\x89PNG") and media[1][1].startswith(b"RIFF")


def test_a_video_as_it_is(tmp_path: Path) -> None:
    film = write_video(tmp_path / "film.mp4", 12)
    with StubServer() as server:
        assert GEMINI.ask_one(server, make_request("one", visuals=[str(film)]), pass_video=True).text == "one"
        assert media_of(server) == [("video/mp4", film.read_bytes())]
    part = {"type": "video", "url": str(film), "start_time": 0.0, "end_time": 0.2}
    turns = [{"role": "user", "content": [part, {"type": "text", "text": "ANSWER=x"}]}]
    messages = ChatMessages.model_validate({"messages": turns})
    with StubServer() as server:
        GEMINI.ask_one(server, make_request("one", messages=messages), pass_video=True, max_frames_num=2)
        assert [mime for mime, _ in media_of(server)] == ["image/png"] * 2


def test_pictures_in_answers_come_in_order() -> None:
    with StubServer(fault="pictures") as server:
        response = GEMINI.ask_one(server, response_modalities="[text,IMAGE]")
        config = server.bodies()[0]["generationConfig"]
    data = base64.b64decode(PIXEL)
    assert response.text == "before after" and response.finish_reason == "stop"
    assert response.parts == ("before ", GeneratedImage.from_bytes(data, "image/png"), "after")
    assert isinstance(response.parts[1], GeneratedImage) and response.parts[1].data == data
    assert config["responseModalities"] == ["TEXT", "IMAGE"]


def test_a_text_alone_is_no_interleaved_answer() -> None:
    with StubServer() as server:
        response = GEMINI.ask_one(server)
        assert "responseModalities" not in server.bodies()[0]["generationConfig"]
    assert (response.text, response.parts) == ("one", ())


def test_data_that_are_no_picture() -> None:
    data = SimpleNamespace(inline_data=SimpleNamespace(data=b"RIFF....WAVE"), text=None, thought=None)
    answer = SimpleNamespace(
        usage_metadata=None,
        candidates=[SimpleNamespace(content=SimpleNamespace(parts=[data]), finish_reason="STOP")],
    )
    with pytest.raises(AttemptError, match="no PNG") as raised:
        GEMINI.build().read(answer)
    assert raised.value.kind == "malformed"


def test_modalities_are_part_of_the_identity_where_they_are_given() -> None:
    plain = GEMINI.build().identity()
    asked = GEMINI.build(response_modalities="TEXT+IMAGE").identity()
    assert "response_modalities" not in plain and asked == {**plain, "response_modalities": ["TEXT", "IMAGE"]}
    with pytest.raises(ModelError, match="response_modalities"):
        GEMINI.build(response_modalities="AUDIO")


def test_thresholds_of_safety_and_thinking() -> None:
    with StubServer() as server:
        GEMINI.ask_one(server, safety_threshold="block_none", enable_thinking=False)
        body = server.bodies()[0]
    settings = body["safetySettings"]
    assert len({item["category"] for item in settings}) == 4
    assert {item["threshold"] for item in settings} == {"BLOCK_NONE"}
    assert list(body["generationConfig"]["thinkingConfig"].values()) == [0]
    with pytest.raises(ModelError, match="safety_threshold"):
        GEMINI.build(safety_threshold="some")
    with pytest.raises(ModelError, match="contradict"):
        GEMINI.build(enable_thinking=True, thinking_budget=0)
