from __future__ import annotations

import contextlib
import struct
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from loguru import logger

from lmms_eval.errors import MediaError
from lmms_eval.media import Sampling, probe, read_frames, uniform_indices, video
from lmms_eval.media.video import FRAMES, select
from lmms_eval.media.video_file import VideoInfo
from tests.cases import for_each
from tests.media.draw import HEIGHT, WIDTH, number_of, write_video


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300 frames with a key frame every 10, with B-frames."""
    return write_video(tmp_path_factory.mktemp("video") / "clip.mp4", 300, fps=30, g=10, bf=2, sc_threshold=0)


def numbers(path: Path, sampling: Sampling) -> list[int]:
    frames = read_frames(path, sampling)
    found = [number_of(frame) for frame in frames.array]
    assert found == list(frames.indices)
    return found


def test_probe(clip: Path) -> None:
    info = probe(clip)
    assert (info.frames, info.width, info.height) == (300, WIDTH, HEIGHT)
    assert info.fps == pytest.approx(30)
    assert info.duration == pytest.approx(10, abs=0.1)


def test_frames_are_counted_where_the_container_does_not(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mkv", 37)
    assert probe(path).frames == 37
    assert numbers(path, Sampling(count=4)) == uniform_indices(37, 4)


@for_each("suffix", ["webm", "mkv"])
def test_webm_and_mkv_are_sampled_too(suffix: str, tmp_path: Path) -> None:
    path = write_video(tmp_path / f"a.{suffix}", 40, codec="libvpx" if suffix == "webm" else "libx264")
    assert len(read_frames(path, Sampling(count=5))) == 5


@pytest.mark.parametrize("count", [1, 3, 8, 64, 299, 300, 500])
def test_evenly_spaced(clip: Path, count: int) -> None:
    assert numbers(clip, Sampling(count=count)) == uniform_indices(300, min(count, 300))


def test_rate_and_part(clip: Path) -> None:
    assert numbers(clip, Sampling(fps=1.0)) == uniform_indices(300, 10)
    assert numbers(clip, Sampling(count=4, fps=1.0)) == uniform_indices(300, 4)
    part = numbers(clip, Sampling(count=5, start=2.0, end=4.0))
    assert part == [60 + i for i in uniform_indices(61, 5)]
    assert len(read_frames(clip, Sampling())) == 300


def test_given_indices_repetitions_included(clip: Path) -> None:
    assert numbers(clip, Sampling(indices=(7, 3, 3, 299))) == [3, 3, 7, 299]
    with pytest.raises(MediaError, match="outside"):
        read_frames(clip, Sampling(indices=(300,)))


def test_frames_are_kept_and_read_only(clip: Path) -> None:
    first = read_frames(clip, Sampling(count=3))
    assert read_frames(clip, Sampling(count=3)) is first
    with pytest.raises(ValueError, match="read-only"):
        first.array[0] = 0
    images = first.images()
    assert [image.size for image in images] == [(WIDTH, HEIGHT)] * 3
    assert first.times() == pytest.approx([0, 149 / 30, 299 / 30])


def test_colours(clip: Path) -> None:
    below = read_frames(clip, Sampling(indices=(0,))).array[0][HEIGHT * 3 // 4, WIDTH // 2]
    assert below.tolist() == pytest.approx([200, 40, 30], abs=12)


def test_a_cut_file_gives_what_can_be_read(tmp_path: Path) -> None:
    import av

    path = tmp_path / "whole.mp4"
    with av.open(str(path), "w", options={"movflags": "faststart"}) as container:
        stream = container.add_stream("libx264", rate=25, options={"bf": "0"})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        from tests.media.draw import numbered_frame

        for number in range(120):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(numbered_frame(number), format="rgb24")))
        container.mux(stream.encode())
    data = path.read_bytes()
    cut = tmp_path / "cut.mp4"
    cut.write_bytes(data[: len(data) * 2 // 3])
    assert probe(cut).frames == 120
    with pytest.raises(MediaError, match=r"states 120 frames, but only (\d+) can be decoded") as refused:
        read_frames(cut, Sampling(indices=(3, 119)))
    there = int(str(refused.value).split("only ")[1].split()[0])
    assert 20 < there < 100
    assert probe(cut, counts=True).frames in (there, there + 1)  # the last frame is torn
    with logged() as lines:
        assert numbers(cut, Sampling(count=20)) == uniform_indices(there, 20)
    assert f"cut.mp4 states 120 frames, but only {there} can be decoded" in lines[0]


@contextlib.contextmanager
def logged() -> Iterator[list[str]]:
    lines: list[str] = []
    handler = logger.add(lambda message: lines.append(str(message)), format="{message}", level="WARNING")
    try:
        yield lines
    finally:
        logger.remove(handler)


def claiming(path: Path, frames: int, claim: int) -> Path:
    """A video whose header tells another number of frames."""
    data = bytearray(write_video(path, frames, codec="mpeg4").read_bytes())
    for name, offset in ((b"avih", 16), (b"strh", 32)):
        place = data.index(name) + 8 + offset
        data[place : place + 4] = claim.to_bytes(4, "little")
    path.write_bytes(data)
    return path


def test_a_header_that_tells_too_many_frames(tmp_path: Path) -> None:
    path = claiming(tmp_path / "lie.avi", 30, 3000)
    assert (probe(path).frames, probe(path, counts=True).frames) == (3000, 30)
    with logged() as lines:
        assert numbers(path, Sampling(count=8)) == uniform_indices(30, 8)
        assert numbers(path, Sampling(count=5)) == uniform_indices(30, 5)
        assert numbers(path, Sampling(step=7)) == [0, 7, 14, 21, 28]
    assert len(lines) == 1
    assert "lie.avi states 3000 frames, but only 30 can be decoded: frames are chosen among these" in lines[0]
    with pytest.raises(MediaError, match="no frame between 30"):
        read_frames(path, Sampling(count=8, start=30.0, end=60.0))


@for_each("sampling", [Sampling(), Sampling(fps=1.0), Sampling(step=1), Sampling(count=2_000_000_000)])
def test_a_claim_takes_no_memory(tmp_path: Path, sampling: Sampling) -> None:
    path = claiming(tmp_path / "lie.avi", 30, 2_000_000_000)
    tracemalloc.start()
    found = numbers(path, sampling)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == ([0] if sampling.fps else list(range(30)))
    assert peak < 20 * 2**20


def test_a_frame_of_claimed_size_takes_no_memory(tmp_path: Path) -> None:
    path = write_video(tmp_path / "wide.avi", 3, codec="ffv1")
    data = bytearray(path.read_bytes())
    place = data.index(b"strf") + 8 + 4  # width and height of the BITMAPINFOHEADER
    data[place : place + 8] = struct.pack("<ii", 20_000, 10_000)
    path.write_bytes(data)
    with pytest.raises(MediaError, match="claims frames of 20000x10000 pixels"):
        read_frames(path, Sampling(count=2))


@for_each("data", [b"", b"not a video", bytes(4096)])
def test_what_is_no_video_is_an_error(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad.mp4"
    path.write_bytes(data)
    for read in (probe, read_frames):
        with pytest.raises(MediaError, match=r"bad\.mp4"):
            read(path)


def test_a_sound_file_has_no_video_stream(tmp_path: Path) -> None:
    from lmms_eval.media import encode_wav
    from tests.media.draw import tone

    path = tmp_path / "a.wav"
    path.write_bytes(encode_wav(tone(), 8000))
    with pytest.raises(MediaError, match="no video stream"):
        probe(path)


def test_video_from_bytes(clip: Path) -> None:
    data = clip.read_bytes()
    assert probe(data).frames == 300
    assert list(read_frames(data, Sampling(count=3)).indices) == [0, 149, 299]


def test_turned_by_the_display_matrix(clip: Path, tmp_path: Path) -> None:
    """A telephone held upright records lying frames and a matrix that turns them clockwise by a quarter."""
    data = bytearray(clip.read_bytes())
    matrix = data.index(b"tkhd") + 4 + 40
    assert struct.unpack(">i", data[matrix : matrix + 4]) == (0x10000,)
    data[matrix : matrix + 36] = struct.pack(">9i", 0, 0x10000, 0, -0x10000, 0, 0, HEIGHT << 16, 0, 0x40000000)
    path = tmp_path / "turned.mp4"
    path.write_bytes(bytes(data))
    frame = read_frames(path, Sampling(indices=(5,))).array[0]
    assert frame.shape == (WIDTH, HEIGHT, 3)
    assert number_of(np.rot90(frame, 1)) == 5  # turning it back counter-clockwise


INFO = VideoInfo(100, 10.0, 10.0, 4, 4)


def test_selection_of_an_empty_part_is_an_error() -> None:
    with pytest.raises(MediaError, match="no frame between"):
        select(INFO, Sampling(count=2, start=20.0))
    with pytest.raises(ValueError, match="at least 1"):
        select(INFO, Sampling(count=-1))


def test_zero_is_no_count() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        select(INFO, Sampling(count=0))


def test_a_stream_that_changes_its_size_keeps_that_of_the_first_frame(
    clip: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FRAMES.clear()
    real = video._pixels
    turn: list[int] = []

    def shrinking(frame: object) -> np.ndarray:
        turn.append(1)
        pixels = real(frame)
        return pixels if len(turn) == 1 else np.ascontiguousarray(pixels[::2, ::2])

    monkeypatch.setattr(video, "_pixels", shrinking)
    frames = read_frames(clip, Sampling(indices=(0, 1)))
    assert frames.array.shape == (2, HEIGHT, WIDTH, 3)
    FRAMES.clear()
