"""Chat messages in the wire form of OpenAI-compatible servers."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pydantic
import pytest
from PIL import Image

from lmms_eval.api import messages as base
from lmms_eval.errors import MediaError
from lmms_eval.media import Bounds, WireOptions
from lmms_eval.protocol import ChatMessages
from tests.media.draw import HEIGHT, WIDTH, encoded, number_of, picture, write_video


def user(*content: dict[str, Any]) -> ChatMessages:
    return ChatMessages(messages=[{"role": "user", "content": list(content)}])  # type: ignore[list-item]


def parts(conversation: ChatMessages, **options: Any) -> list[dict[str, Any]]:
    (message,) = conversation.to_openai_messages(**options)
    assert message["role"] == "user"
    return message["content"]  # type: ignore[no-any-return]


def opened(part: dict[str, Any]) -> Image.Image:
    assert part["type"] == "image_url"
    head, _, body = part["image_url"]["url"].partition(",")
    assert head.startswith("data:image/") and head.endswith(";base64")
    return Image.open(io.BytesIO(base64.b64decode(body)))


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_video(tmp_path_factory.mktemp("video") / "numbers.mp4", 50, fps=25)


def test_it_is_the_conversation_that_models_are_handed() -> None:
    assert issubclass(ChatMessages, base.ChatMessages)
    with pytest.raises(pydantic.ValidationError):
        ChatMessages(messages=[{"role": "user", "content": "text"}])  # type: ignore[list-item]


def test_original_bytes_of_a_file_go_out(tmp_path: Path) -> None:
    data = encoded(picture(), "JPEG")
    (tmp_path / "a.jpg").write_bytes(data)
    found = parts(user({"type": "image", "url": str(tmp_path / "a.jpg")}, {"type": "text", "text": "What?"}))
    assert found[0]["image_url"]["url"] == f"data:image/jpeg;base64,{base64.b64encode(data).decode()}"
    assert found[1] == {"type": "text", "text": "What?"}


def test_pictures_in_memory_and_far_away() -> None:
    image = picture()
    found = parts(user({"type": "image", "url": image}, {"type": "image", "url": "https://host/a.png"}))
    assert np.array_equal(np.asarray(opened(found[0])), np.asarray(image))
    assert found[1]["image_url"]["url"] == "https://host/a.png"
    small = parts(
        user({"type": "image", "url": image}),
        image_options=WireOptions(bounds=Bounds(max_pixels=100), image_format="JPEG"),
    )
    assert opened(small[0]).format == "JPEG" and opened(small[0]).width * opened(small[0]).height <= 100


def test_frames_of_a_video(video: Path) -> None:
    found = parts(user({"type": "video", "url": str(video)}), video_kwargs={"nframes": 4})
    assert [number_of(np.asarray(opened(part))) for part in found] == [0, 16, 32, 49]
    assert len(parts(user({"type": "video", "url": str(video)}))) == 32


@pytest.mark.parametrize(
    ("settings", "count"),
    [
        ({"fps": 2}, 4),
        ({"fps": 10, "max_frames": 5}, 5),
        ({"fps": 1, "min_frames": 6}, 6),
        ({"fps": 1, "nframes": 3}, 3),
    ],
)
def test_sampling(video: Path, settings: dict[str, Any], count: int) -> None:
    assert len(parts(user({"type": "video", "url": str(video)}), video_kwargs=settings)) == count


@pytest.mark.parametrize(("settings", "limit"), [({"max_pixels": 1000}, 1000), ({"total_pixels": 1800}, 900)])
def test_pixels_of_frames(video: Path, settings: dict[str, Any], limit: int) -> None:
    found = parts(user({"type": "video", "url": str(video)}), video_kwargs={"nframes": 2, **settings})
    sizes = [opened(part).size for part in found]
    assert all(0.8 * limit < width * height <= limit < WIDTH * HEIGHT for width, height in sizes)


def test_part_of_a_video(video: Path) -> None:
    timed = {"type": "video", "url": str(video), "start_time": 1.0, "end_time": 1.4}
    told = {"type": "video", "url": {"path": str(video), "video_start": 1.0, "video_end": 1.4}}
    for content in (timed, told):
        found = parts(user(content), video_kwargs={"nframes": 3})
        assert [number_of(np.asarray(opened(part))) for part in found] == [25, 30, 35]


def test_times_in_front_of_frames(video: Path) -> None:
    (message,) = user({"type": "video", "url": str(video)}).to_qwen3_vl_openai_messages({"nframes": 3})
    found = message["content"]
    assert [part["text"] for part in found[::2]] == ["<0.0 seconds>", "<1.0 seconds>", "<2.0 seconds>"]
    assert [number_of(np.asarray(opened(part))) for part in found[1::2]] == [0, 24, 49]


def test_unknown_video_settings_are_named() -> None:
    with pytest.raises(ValueError, match="nframe"):
        parts(user({"type": "text", "text": "t"}), video_kwargs={"nframe": 4})


def test_addresses_of_videos(video: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(video.parent)
    for url in (video.name, str(video), video.as_uri(), {"path": str(video)}):
        (part,) = parts(user({"type": "video", "url": url}), pass_video_url=True)
        assert part == {"type": "video_url", "video_url": {"url": video.as_uri()}}
    (part,) = parts(user({"type": "video", "url": "data:video/mp4;base64,AAAA"}), pass_video_url=True)
    assert part["video_url"]["url"] == "data:video/mp4;base64,AAAA"
    with pytest.raises(MediaError, match="no address"):
        parts(user({"type": "video", "url": b"bytes"}), pass_video_url=True)


def test_sounds_are_encoded() -> None:
    sound = {"array": np.zeros(80, np.float32), "sampling_rate": 8000}
    found = parts(user({"type": "audio", "url": sound}, {"type": "audio", "url": "http://h/a.wav"}))
    head, _, body = found[0]["audio_url"]["url"].partition(",")
    assert head == "data:audio/wav;base64" and base64.b64decode(body)[:4] == b"RIFF"
    assert found[1] == {"type": "audio_url", "audio_url": {"url": "http://h/a.wav"}}


def test_missing_media_are_named() -> None:
    with pytest.raises(MediaError, match=r"absent\.png"):
        parts(user({"type": "image", "url": "absent.png"}))
