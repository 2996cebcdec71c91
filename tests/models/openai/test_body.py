"""Request bodies: messages and media as the protocol wants them."""

from __future__ import annotations

import base64
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from PIL import Image

from lmms_eval.api.messages import ChatMessages
from lmms_eval.errors import MediaError, ModelError
from lmms_eval.media import read_frames
from lmms_eval.media.video import Sampling
from lmms_eval.models.openai.arguments import find_endpoint, parse_arguments
from lmms_eval.models.openai.body import BodyBuilder
from tests.cases import for_each
from tests.media.draw import encoded, number_of, picture, tone, write_talkie, write_video
from tests.models.openai.support import make_request


def builder(**arguments: Any) -> BodyBuilder:
    parsed = parse_arguments({"model": "m", "base_url": "http://127.0.0.1:1/v1", **arguments}, {})
    return BodyBuilder(parsed, find_endpoint(parsed, {}))


def build(request: Any, **arguments: Any) -> dict[str, Any]:
    body: dict[str, Any] = orjson.loads(builder(**arguments).build(request))
    return body


def conversation(*messages: tuple[str, list[dict[str, Any]]]) -> ChatMessages:
    return ChatMessages.model_validate({"messages": [{"role": role, "content": parts} for role, parts in messages]})


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def parts_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = body["messages"][-1]["content"]
    return parts


def decoded(part: dict[str, Any]) -> bytes:
    return base64.b64decode(part["image_url"]["url"].partition(",")[2])


@for_each(
    ("arguments", "mime"),
    [
        ({"base_url": "https://api.openai.com/v1", "api_key": "k"}, "image/webp"),
        ({"base_url": "https://h/", "api_key": "k", "azure_openai": True, "api_version": "1"}, "image/webp"),
        ({"base_url": "https://h/", "api_key": "k"}, "image/png"),
        ({"base_url": "https://api.openai.com/v1", "api_key": "k", "image_format": "PNG"}, "image/png"),
    ],
)
def test_only_a_server_that_is_known_to_take_webp_gets_it(arguments: dict[str, Any], mime: str) -> None:
    part, _ = parts_of(build(make_request("one", "Q", [picture()]), **arguments))
    assert part["image_url"]["url"].startswith(f"data:{mime};base64,")
    assert Image.open(io.BytesIO(decoded(part))).convert("RGB").tobytes() == picture().tobytes()


def test_text_only() -> None:
    assert build(make_request("one", "What?")) == {
        "model": "m",
        "messages": [{"role": "user", "content": [text("What?")]}],
        "max_tokens": 16,
        "temperature": 0,
    }


def test_any_text_can_be_sent() -> None:
    sent = 'quote " backslash \\ newline \n nul \0 Ω 😀'
    assert parts_of(build(make_request("one", sent))) == [text(sent)]
    assert parts_of(build(make_request("one", "half \ud83d pair"))) == [text("half ? pair")]


def test_a_plain_jpeg_goes_out_untouched(tmp_path: Path) -> None:
    data = encoded(picture(), "JPEG", quality=80)
    (tmp_path / "a.jpg").write_bytes(data)
    visuals = [str(tmp_path / "a.jpg"), {"type": "image", "url": {"bytes": data, "path": None}}]
    first, second, question = parts_of(build(make_request("one", "Q", visuals)))
    assert decoded(first) == decoded(second) == data and question == text("Q")
    assert first["image_url"]["url"].startswith("data:image/jpeg;base64,")


def test_a_decoded_picture_is_encoded_without_loss() -> None:
    image = picture()
    part = parts_of(build(make_request("one", "Q", [image])))[0]
    assert Image.open(io.BytesIO(decoded(part))).tobytes() == image.tobytes()
    part = parts_of(build(make_request("one", "Q", [image]), image_format="jpeg"))[0]
    assert part["image_url"]["url"].startswith("data:image/jpeg;")


def test_limits_shrink_a_picture() -> None:
    part = parts_of(build(make_request("one", "Q", [picture(size=(200, 100))]), max_pixels=5000))[0]
    assert Image.open(io.BytesIO(decoded(part))).size == (100, 50)


def test_addresses_pass_through() -> None:
    url = "https://example.invalid/a.jpg?x=1"
    messages = conversation(("user", [{"type": "image", "url": url}, text("Q")]))
    assert parts_of(build(make_request("one", messages=messages)))[0] == {
        "type": "image_url",
        "image_url": {"url": url},
    }


def test_order_of_parts_and_roles_is_kept() -> None:
    messages = conversation(
        ("system", [text("S")]),
        ("user", [text("a"), {"type": "image", "url": picture()}, text("b")]),
        ("assistant", [text("c")]),
        ("user", [text("d")]),
    )
    body = build(make_request("one", messages=messages))
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "user"]
    assert [part["type"] for part in body["messages"][1]["content"]] == ["text", "image_url", "text"]


def test_a_server_is_asked_to_continue_the_beginning_of_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    begun = conversation(("user", [text("a")]), ("assistant", [text("b")]))
    body = build(make_request("one", messages=begun))
    assert body["continue_final_message"] is True and body["add_generation_prompt"] is False
    assert "continue_final_message" not in build(make_request("one", messages=conversation(("user", [text("a")]))))
    public = builder(base_url="https://api.openai.com/v1", api_key="k")
    for _ in range(2):
        assert "continue_final_message" not in orjson.loads(public.build(make_request("one", messages=begun)))
    assert caplog.text.count("this service has no option to continue it") == 1


def test_a_plain_text_is_a_message_of_the_user_for_a_server_of_conversations(caplog: pytest.LogCaptureFixture) -> None:
    plain = conversation(("user", [text("a")])).model_copy(update={"is_plain": True})
    assert build(make_request("one", messages=plain))["messages"] == [{"role": "user", "content": [text("a")]}]
    assert "give --apply_chat_template" in caplog.text
    caplog.clear()
    assert build(make_request("one", messages=plain), api="completions")["prompt"] == "a"
    assert not caplog.text


def test_system_prompt_is_put_first_or_replaces(tmp_path: Path) -> None:
    request = make_request("one", "Q")
    expected = {"role": "system", "content": [text("Be brief.")]}
    assert build(request, system_prompt="Be brief.")["messages"][0] == expected
    (tmp_path / "prompt.txt").write_text("Be brief.", encoding="utf-8")
    assert build(request, system_prompt=str(tmp_path / "prompt.txt"))["messages"][0] == expected
    own = make_request("one", messages=conversation(("system", [text("S")]), ("user", [text("Q")])))
    body = build(own, system_prompt="Be brief.")
    assert body["messages"][0] == expected and len(body["messages"]) == 2
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelError, match="UTF-8"):
        builder(system_prompt=str(tmp_path / "binary"))


def test_video_as_frames(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", 50, fps=25)
    request = make_request("one", "Q", [str(path)])
    parts = parts_of(build(request, max_frames_num=4))
    assert [part["type"] for part in parts] == ["image_url"] * 4 + ["text"]
    frames = read_frames(str(path), Sampling(count=4))
    sent = [Image.open(io.BytesIO(decoded(part))) for part in parts[:4]]
    assert [image.tobytes() for image in sent] == [frame.tobytes() for frame in frames.array]
    assert len(parts_of(build(request, video_fps=1))) == 2 + 1, "two seconds"
    assert len(parts_of(build(request))) == 10 + 1


def test_part_of_a_video_and_timestamps(tmp_path: Path) -> None:
    import numpy as np

    path = str(write_video(tmp_path / "a.mp4", 50, fps=25))
    clip = {"type": "video", "url": path, "start_time": 1.0, "end_time": 1.6}
    parts = parts_of(build(make_request("one", messages=conversation(("user", [clip]))), nframes=2, is_qwen3_vl=True))
    assert [part.get("text") for part in parts] == ["<1.0 seconds>", None, "<1.6 seconds>", None]
    assert number_of(np.asarray(Image.open(io.BytesIO(decoded(parts[1]))))) == 25
    mapping = {"type": "video", "url": {"video": path, "video_start": 1.0, "video_end": 1.6}}
    same = parts_of(build(make_request("one", messages=conversation(("user", [mapping]))), nframes=2, is_qwen3_vl=True))
    assert same == parts


def test_frames_by_a_rule(tmp_path: Path) -> None:
    """As Qwen's script shows Video-MME: an even number of frames with the first and the last, scaled together."""
    film = make_request("one", visuals=[str(write_video(tmp_path / "a.mp4", 61, fps=30))])
    limits = {"fps": 2, "min_frames": 4, "max_frames_num": 512, "frame_rule": "qwen-vl-utils"}

    def images(**more: Any) -> list[Image.Image]:
        parts = parts_of(build(film, **limits, **more))
        return [Image.open(io.BytesIO(decoded(part))) for part in parts if part["type"] == "image_url"]

    assert [number_of(np.asarray(image.convert("RGB"))) for image in images(min_pixels=1)] == [0, 20, 40, 60]
    assert all(math.prod(image.size) <= 5000 for image in images(min_pixels=3584, max_pixels=5000))
    assert all(math.prod(image.size) >= 120_000 for image in images())
    least = build(film, fps=1, min_frames=5, max_frames_num=512)
    assert sum(part["type"] == "image_url" for part in parts_of(least)) == 5
    with pytest.raises(ModelError, match="frame_rule: Input should be 'qwen-vl-utils', 'inner', 'by-rate' or 'middle'"):
        build(film, frame_rule="even")


def test_a_rule_without_frames_fails_the_request(tmp_path: Path) -> None:
    film = make_request("one", visuals=[str(write_video(tmp_path / "a.mp4", 12, fps=25))])
    with pytest.raises(MediaError, match="frames by rate need the rate of the video, and fps"):
        build(film, frame_rule="by-rate")


def test_frames_are_followed_by_the_sound_of_their_video(tmp_path: Path) -> None:
    loud, silent = write_talkie(tmp_path / "loud.mkv"), write_video(tmp_path / "silent.mp4", 12)
    for path, bounds, seconds in ((loud, {}, 2.0), (loud, {"end_time": 0.5}, 0.5), (silent, {}, None)):
        part = {"type": "video", "url": str(path), **bounds}
        messages = ChatMessages.model_validate({"messages": [{"role": "user", "content": [part]}]})
        parts = parts_of(build(make_request("one", messages=messages), use_audio_in_video=True, max_frames_num=3))
        assert [one["type"] for one in parts] == ["image_url"] * 3 + ["input_audio"] * (seconds is not None)
        if seconds is not None:
            wav = base64.b64decode(parts[-1]["input_audio"]["data"])
            assert (
                len(wav) == pytest.approx(seconds * 16000 * 2, abs=100) and parts[-1]["input_audio"]["format"] == "wav"
            )


def test_a_server_that_opens_videos_is_asked_for_their_sound(tmp_path: Path) -> None:
    request = make_request("one", visuals=[str(write_talkie(tmp_path / "loud.mkv"))])
    body = build(request, use_audio_in_video=True, pass_video_url=True, extra_body={"mm_processor_kwargs": {"fps": 1}})
    assert body["mm_processor_kwargs"] == {"fps": 1, "use_audio_in_video": True}
    assert [part["type"] for part in parts_of(body)] == ["video_url", "text"]


def test_video_by_address(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a b.mp4", 5)
    data = path.read_bytes()
    videos = [str(path), "https://example.invalid/v.mp4", {"bytes": data}]
    messages = conversation(("user", [{"type": "video", "url": video} for video in videos]))
    parts = parts_of(build(make_request("one", messages=messages), pass_video_url=True))
    assert [part["type"] for part in parts] == ["video_url"] * 3
    urls = [part["video_url"]["url"] for part in parts]
    assert urls[:2] == [path.as_uri(), "https://example.invalid/v.mp4"] and "%20" in urls[0]
    assert base64.b64decode(urls[2].partition(",")[2]) == data


def test_audio(tmp_path: Path) -> None:
    sound = {"array": tone(), "sampling_rate": 8000}
    part = parts_of(build(make_request("one", "Q", [sound])))[0]
    assert part["type"] == "input_audio" and part["input_audio"]["format"] == "wav"
    data = base64.b64decode(part["input_audio"]["data"])
    assert data[:4] == b"RIFF"
    (tmp_path / "a.wav").write_bytes(data)
    again = parts_of(build(make_request("one", "Q", [str(tmp_path / "a.wav")])))[0]
    assert again == part


def test_a_missing_file_is_an_error_of_media() -> None:
    with pytest.raises(MediaError, match=r"nowhere\.jpg"):
        builder().build(make_request("one", "Q", ["/nowhere.jpg"]))


def test_extra_body_and_thinking() -> None:
    request = make_request("one", "Q")
    body = build(request, extra_body='{"top_k": 5, "chat_template_kwargs": {"a": 1}}', enable_thinking_kwarg=False)
    assert body["top_k"] == 5 and body["chat_template_kwargs"] == {"a": 1, "enable_thinking": False}
    assert build(request, enable_thinking_kwarg="thinking")["chat_template_kwargs"] == {"thinking": True}
    assert "chat_template_kwargs" not in build(request)


def test_reasoning_model() -> None:
    body = build(make_request("one", "Q", generation={"temperature": 0, "until": ["x"]}), model="gpt-5-mini")
    assert {key: body[key] for key in body if key != "messages"} == {
        "model": "gpt-5-mini",
        "max_completion_tokens": 1024,
    }


def test_ignored_options_are_noted() -> None:
    made = builder()
    noted: list[str] = []
    made.note_ignored = noted.extend
    made.build(make_request("one", "Q", generation={"image_aspect_ratio": "pad"}))
    assert noted == ["image_aspect_ratio"]


def test_options_are_translated_once_and_each_sample_has_its_own_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    from lmms_eval.models.openai import body

    made: list[int] = []
    translate = body.map_generation
    monkeypatch.setattr(body, "map_generation", lambda *given: made.append(given[1]) or translate(*given))
    maker = builder()
    greedy, sampled = {"max_new_tokens": 7, "until": ["\n"]}, {"do_sample": True, "temperature": 0.5}
    for seed in (1, 2, 3):
        sent = maker.body(make_request("a", generation=greedy, seed=seed))
        assert (sent["max_tokens"], sent["stop"], sent["temperature"]) == (7, ["\n"], 0)
        assert maker.body(make_request("a", generation=sampled, seed=seed))["seed"] == seed
        assert maker.body(make_request("a", generation={"max_new_tokens": 8}, seed=seed))["max_tokens"] == 8
    assert len(made) == 1 + 3 + 1
    assert maker.body(make_request("a", generation={"stop": {"a"}, "max_new_tokens": 9}))["max_tokens"] == 9


def picture_sizes(body: dict[str, Any]) -> list[tuple[int, int]]:
    return [Image.open(io.BytesIO(decoded(part))).size for part in parts_of(body) if part["type"] == "image_url"]


def test_sizes_of_pictures_and_frames(tmp_path: Path) -> None:
    request = make_request("one", visuals=[picture(size=(80, 40)), picture(size=(8, 4))])
    assert picture_sizes(build(request, max_image_size=20)) == [(20, 10), (8, 4)]
    assert picture_sizes(build(request, min_pixels=128)) == [(80, 40), (16, 8)]
    noise = Image.effect_noise((300, 300), 90)
    small = picture_sizes(build(make_request("one", visuals=[noise]), max_size_in_mb=0.02))[0]
    assert small < (200, 200) and picture_sizes(build(make_request("one", visuals=[noise]))) == [(300, 300)]
    film = make_request("one", visuals=[str(write_video(tmp_path / "a.mp4", 12))])
    each = picture_sizes(build(film, num_frames=3, total_pixels=3 * 200))
    assert len(each) == 3 and all(150 < width * height <= 200 for width, height in each)


@for_each("value", [True, False])
def test_thinking_is_a_variable_of_the_servers_template(value: bool) -> None:
    body = build(make_request("one"), enable_thinking=value)
    assert body["chat_template_kwargs"] == {"enable_thinking": value}
