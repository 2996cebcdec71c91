"""What went out with a request is noted by what prepares it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from PIL import Image

from lmms_eval.api.request import SentMedia
from lmms_eval.media import (
    Bounds,
    Sampling,
    WireOptions,
    image_url,
    load_audio,
    load_rgb,
    read_frames,
    shrink,
    wire_audio,
    wire_image,
)
from lmms_eval.media import sent as module
from lmms_eval.media.audio import encode_wav
from lmms_eval.media.keeper import KeepLimits, MediaKeeper
from lmms_eval.media.opened import keep_originals
from lmms_eval.media.sent import recording, unrecorded
from tests.media.draw import encoded, picture, tone, write_video


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def jpeg(tmp_path: Path) -> Path:
    path = tmp_path / "photo.jpg"
    path.write_bytes(encoded(picture(size=(40, 30)), "JPEG"))
    return path


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    return write_video(tmp_path / "clip.mp4", 50, fps=25)


def test_a_file_sent_untouched(jpeg: Path) -> None:
    data = jpeg.read_bytes()
    wanted = SentMedia("image", path=str(jpeg), sha256=sha(data), nbytes=len(data), width=40, height=30)
    for _ in range(2):  # read, and found in the table
        with recording() as sent:
            wire_image(str(jpeg))
        assert sent == [wanted]


def test_a_relative_path_is_told_as_an_absolute_one(jpeg: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(jpeg.parent)
    with recording() as sent:
        wire_image("photo.jpg")
    assert sent[0].path == str(jpeg)


def test_a_picture_that_was_shrunk_and_encoded_anew(jpeg: Path) -> None:
    with recording() as sent:
        wire = wire_image(str(jpeg), WireOptions(bounds=Bounds(max_pixels=300)))
    assert (sent[0].sha256, sent[0].nbytes) == (sha(jpeg.read_bytes()), wire.nbytes)  # of the source; as it was sent
    assert (sent[0].width, sent[0].height) == (20, 15)


def test_pictures_for_a_local_model(jpeg: Path) -> None:
    data = jpeg.read_bytes()
    with recording() as sent:
        load_rgb(str(jpeg), bounds=Bounds(max_pixels=300))
        load_rgb({"bytes": data, "path": "from_hub.jpg"})
        load_rgb(Image.open(jpeg))
    by_path, by_bytes, opened = sent
    assert by_path == SentMedia("image", path=str(jpeg), sha256=sha(data), width=20, height=15)
    assert by_bytes == SentMedia("image", name="from_hub.jpg", sha256=sha(data), width=40, height=30)
    assert (opened.path, len(opened.sha256)) == (str(jpeg), 64)


def test_an_address_is_told_without_its_query() -> None:
    with recording() as sent:
        image_url("https://host/a.png?key=secret")
    assert sent == [SentMedia("image", url="https://host/a.png")]


def test_frames_of_a_video_are_told_once(clip: Path) -> None:
    wanted = SentMedia(
        "video", path=str(clip), sha256=sha(clip.read_bytes()), width=64, height=48, frames=(0, 24, 49),
        times=(0.0, 0.96, 1.96),
    )  # fmt: skip
    with recording() as sent:
        for image in read_frames(str(clip), Sampling(count=3)).images():
            wire_image(image)
    assert (sent[0].width, sent[0].height) == (read_frames(str(clip), Sampling(count=3)).array.shape[2::-1][:2])
    assert [(one.path, one.sha256, one.frames, one.times) for one in sent] == [
        (wanted.path, wanted.sha256, wanted.frames, wanted.times)
    ]


def test_frames_that_the_task_read_are_told_as_far_as_they_are_sent(clip: Path, jpeg: Path) -> None:
    with recording() as sent:
        with unrecorded():  # the task's own functions
            load_rgb(str(jpeg))
            images = read_frames(str(clip), Sampling(count=5)).images()
        wire_image(shrink(images[1], max_side=32))
        wire_image(images[3].convert("L"))
        wire_image(str(jpeg))
        wire_image(images[4])
    assert [(one.type, one.frames) for one in sent] == [("video", (12, 36)), ("image", ()), ("video", (49,))]
    assert sent[0].times == (0.48, 1.44)
    assert max(sent[0].width or 0, sent[0].height or 0) == 32


def test_a_large_video_is_named_without_a_digest(clip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_HASHED_BYTES", 10)
    with recording() as sent:
        read_frames(str(clip), Sampling(count=2))
    assert (sent[0].path, sent[0].sha256, sent[0].frames) == (str(clip), "", (0, 49))


def test_sounds(tmp_path: Path) -> None:
    data = encode_wav(tone(8000, 0.5), 8000)
    path = tmp_path / "tone.wav"
    path.write_bytes(data)
    with recording() as sent:
        wire_audio(str(path))
        load_audio(str(path), sampling_rate=16000)
        load_audio({"array": tone(8000, 0.25), "sampling_rate": 8000})
    assert sent[0] == SentMedia("audio", path=str(path), sha256=sha(data), nbytes=len(data), seconds=0.5)
    assert sent[1] == SentMedia("audio", path=str(path), sha256=sha(data), seconds=0.5)
    assert (sent[2].seconds, sent[2].path, len(sent[2].sha256)) == (0.25, "", 64)


def test_nothing_is_hashed_for_nobody(jpeg: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "digest", lambda *_: pytest.fail("hashed"))
    load_rgb(Image.open(jpeg))
    load_rgb(str(jpeg))


def test_as_a_record_and_back() -> None:
    one = SentMedia("video", path="/v.mp4", nbytes=0, frames=(0, 3), times=(0.0, 0.5))
    assert one.to_dict() == {"type": "video", "path": "/v.mp4", "bytes": 0, "frames": [0, 3], "times": [0.0, 0.5]}
    assert SentMedia.from_dict(one.to_dict()) == one


def test_a_picture_that_its_file_shows_is_not_kept(jpeg: Path, tmp_path: Path) -> None:
    """Opened by the task, decoded or not; a part of it has no file."""
    keep_originals()
    keeper = MediaKeeper(tmp_path / "media", tmp_path, KeepLimits(10**6, 10**6))
    opened = {
        "path": str(jpeg), "open": Image.open(jpeg), "convert": Image.open(jpeg).convert("RGB"),
        "bytes": {"bytes": jpeg.read_bytes(), "path": "photo.jpg"}, "part": Image.open(jpeg).crop((0, 0, 9, 9)),
    }  # fmt: skip
    for send in (wire_image, load_rgb):
        kept = set()
        for name, value in opened.items():
            with recording(keeper) as sent:
                send(value)
            kept |= {name} if sent[0].stored else set()
        assert kept == {"bytes", "part"}, send
