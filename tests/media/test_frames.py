"""Seeking and one pass through a video: the same frames, and the cheaper way."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from lmms_eval.media import read_frames, uniform_indices, video
from lmms_eval.media import video_file as video_file_module
from lmms_eval.media.reference import MediaRef
from lmms_eval.media.video import FRAMES, Sampling, VideoFrames, collect_frames, probe
from lmms_eval.media.video_file import VideoFile
from tests.cases import for_each
from tests.media.draw import HEIGHT, WIDTH, number_of, numbered_frame, write_video

B_FRAMES = {"bf": 3, "b_strategy": 0, "b-pyramid": "normal"}
VIDEOS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "no B-frames": ("a.mp4", 200, {"g": 10, "bf": 0}),
    "B-frames": ("a.mp4", 200, {"g": 24, **B_FRAMES}),
    "open groups": ("a.mp4", 200, {"g": 20, "x264-params": "open-gop=1:scenecut=0", **B_FRAMES}),
    "all key frames": ("a.mp4", 120, {"g": 1}),
    "groups of two": ("a.mp4", 120, {"g": 2, "bf": 1, "b_strategy": 0}),
    "few key frames": ("a.mp4", 300, {"g": 120, **B_FRAMES}),
    "one key frame": ("a.mp4", 90, {"g": 1000, "sc_threshold": 0}),
    "intra refresh": ("a.mp4", 150, {"g": 30, "x264-params": "intra-refresh=1:keyint=30"}),
    "short": ("a.mp4", 5, {"g": 2}),
    "a single frame": ("a.mp4", 1, {}),
    "a transport stream": ("a.ts", 120, {"g": 15, **B_FRAMES}),
    "an older codec": ("a.avi", 120, {"codec": "mpeg4", "g": 12}),
    "VP9": ("a.webm", 90, {"codec": "libvpx-vp9", "g": 15, "deadline": "realtime", "cpu-used": 8}),
}


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    FRAMES.clear()
    yield
    FRAMES.clear()


def uneven(path: Path) -> Path:
    """A video whose frames stand for 1 to 7 units of time each."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25, options={"g": "15", "bf": "2"})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.codec_context.time_base = Fraction(1, 100)
        stream.codec_context.gop_size = 15
        time = 0
        for number in range(150):
            frame = av.VideoFrame.from_ndarray(numbered_frame(number), format="rgb24")
            frame.pts, frame.time_base = time, Fraction(1, 100)
            time += 1 + number * 5 % 7
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def made(name: str, folder: Path) -> Path:
    if name == "variable frame rate":
        return uneven(folder / "uneven.mp4")
    file, frames, options = VIDEOS[name]
    return write_video(folder / file, frames, **options)


def read(path: Path, sampling: Sampling, monkeypatch: pytest.MonkeyPatch, way: str) -> VideoFrames:
    FRAMES.clear()
    with monkeypatch.context() as patch:
        if way == "pass":
            patch.setattr(VideoFile, "packet_index", lambda self: None)
        else:
            patch.setattr(video, "_AHEAD", -1000)
        return read_frames(path, sampling)


@for_each("name", [*VIDEOS, "variable frame rate"])
def test_both_ways_give_the_same_frames_and_times(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(name, tmp_path)
    info = probe(path, counts=True)
    for count in sorted({1, 2, 7, min(32, info.frames)}):
        for sampling in (
            Sampling(count=count),
            Sampling(count=count, include_last=True),
            Sampling(step=13),
        ):
            passed = read(path, sampling, monkeypatch, "pass")
            sought = read(path, sampling, monkeypatch, "seek")
            assert (sought.indices, sought.times()) == (passed.indices, passed.times())
            assert np.array_equal(sought.array, passed.array)
    assert [number_of(frame) for frame in passed.array] == list(passed.indices)


@for_each("name", ["B-frames", "open groups", "few key frames", "variable frame rate", "an older codec"])
def test_they_are_sought_for_real(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison above is none of one pass with another."""
    path = made(name, tmp_path)
    info = probe(path)
    monkeypatch.setattr(video, "_by_one_pass", lambda *_: pytest.fail("passed"))
    monkeypatch.setattr(video, "_AHEAD", -1000)
    with VideoFile(MediaRef("path", path=path)) as file:
        found, there = collect_frames(file, [3, 50, 51, 99], info)
    assert {number: number_of(frame) for number, frame in found.items()} == {3: 3, 50: 50, 51: 51, 99: 99}
    assert there == info.frames


def decoded(path: Path, wanted: list[int], monkeypatch: pytest.MonkeyPatch) -> int:
    """How many frames are decoded to collect the wanted ones."""
    counted = 0
    real = VideoFile.decode

    def counting(self: VideoFile) -> Iterator[Any]:
        nonlocal counted
        for frame in real(self):
            counted += 1
            yield frame

    with monkeypatch.context() as patch:
        patch.setattr(VideoFile, "decode", counting)
        with VideoFile(MediaRef("path", path=path)) as file:
            collect_frames(file, wanted, probe(path))
    return counted


def test_a_short_video_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no seek can pay, neither facts nor times of packets take a container of their own."""
    opened = []
    real = video_file_module.open_container
    monkeypatch.setattr(video_file_module, "open_container", lambda ref: opened.append(ref) or real(ref))
    short = write_video(tmp_path / "short.mp4", 24, g=12)
    frames = read_frames(short, Sampling(count=8))
    assert [number_of(frame) for frame in frames.array] == list(frames.indices)
    assert len(opened) == 1
    read_frames(write_video(tmp_path / "long.mp4", 300, g=1000, sc_threshold=0), Sampling(count=4))
    assert len(opened) == 3  # its packets are read first, and tell that a seek does not pay


def test_the_cheaper_way_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many key frames as frames are wanted: half of all frames need not be decoded."""
    monkeypatch.setattr(VideoFile, "threads", property(lambda self: 2))
    many = write_video(tmp_path / "many.mp4", 600, g=60, sc_threshold=0)
    assert decoded(many, uniform_indices(600, 10), monkeypatch) < 400
    assert decoded(many, [0, 599], monkeypatch) <= 62
    assert decoded(many, list(range(0, 600, 7)), monkeypatch) == 596
    few = write_video(tmp_path / "few.mp4", 300, g=1000, sc_threshold=0)
    assert decoded(few, [0, 150, 299], monkeypatch) == 300


def test_a_key_frame_that_cannot_be_sought_is_no_loss(clip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VideoFile, "seek", lambda self, time: False)
    with VideoFile(MediaRef("path", path=clip)) as file:
        found, _ = collect_frames(file, [5, 290], probe(clip))
    assert {number: number_of(frame) for number, frame in found.items()} == {5: 5, 290: 290}


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    return write_video(tmp_path / "clip.mp4", 300, fps=30, g=10)
