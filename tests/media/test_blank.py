from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lmms_eval.errors import MediaError
from lmms_eval.media import Sampling, encode_wav, load_audio, probe, read_frames
from lmms_eval.media.blank import GREY, blank_audio, blank_image, blank_video
from tests.media.draw import write_video


def test_a_picture_turns_grey_and_keeps_its_upright_size(tmp_path: Path) -> None:
    file = tmp_path / "lying.jpg"
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (9, 5), "red").save(file, exif=exif)
    made = blank_image(str(file))
    assert (made.size, made.getextrema()) == ((5, 9), ((GREY, GREY),) * 3)


def test_a_video_keeps_its_frames_rate_and_size(tmp_path: Path) -> None:
    file = write_video(tmp_path / "clip.mp4", 23, fps=10)
    path = blank_video(str(file))
    before, after = probe(str(file), counts=True), probe(path, counts=True)
    assert (after.frames, after.width, after.height) == (before.frames, before.width, before.height)
    assert after.fps == pytest.approx(before.fps)
    frames = read_frames(path, Sampling()).array
    assert len(frames) == before.frames
    assert abs(int(frames.min()) - GREY) <= 1 >= abs(int(frames.max()) - GREY)
    assert blank_video(str(file)) == path  # made once


def test_a_sound_becomes_silence_of_its_length(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).uniform(-1, 1, 4000).astype(np.float32)
    file = tmp_path / "noise.wav"
    file.write_bytes(encode_wav(noise, 8000))
    sound = load_audio(blank_audio(str(file)))
    assert (len(sound.samples), sound.sampling_rate, float(np.abs(sound.samples).max())) == (4000, 8000, 0.0)
    made = blank_audio({"array": noise, "sampling_rate": 8000})
    assert (made["array"].shape, made["array"].any(), made["sampling_rate"]) == ((4000,), False, 8000)


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(MediaError, match=r"nowhere\.png"):
        blank_image("nowhere.png")
