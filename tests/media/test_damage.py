"""Damaged bytes end in a picture or in ``MediaError``, never in anything else."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval.errors import MediaError
from lmms_eval.media import (
    Sampling,
    header,
    load_audio,
    load_image,
    load_rgb,
    probe,
    read_frames,
    wire_audio,
    wire_image,
)
from lmms_eval.media.audio import encode_wav
from tests.media.draw import encoded, picture, tone, write_video
from tests.media.test_image import rotated_jpeg, transparent_palette

PICTURES = {
    "jpeg": rotated_jpeg(), "png": encoded(picture("RGBA"), "PNG"), "palette": transparent_palette(),
    "webp": encoded(picture(), "WEBP"), "gif": encoded(picture(), "GIF"), "tiff": encoded(picture(), "TIFF"),
    "bmp": encoded(picture(), "BMP"), "sixteen": encoded(picture("I;16"), "PNG"),
}  # fmt: skip

damage = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=6)), max_size=4)


def damaged(data: bytes, hits: list[tuple[float, bytes]], cut: float) -> bytes:
    found = bytearray(data)
    for place, piece in hits:
        start = int(place * len(found))
        found[start : start + len(piece)] = piece
    return bytes(found[: max(1, int(cut * len(found)))])


def harmless(function: Callable[..., Any], data: bytes, *arguments: Any) -> None:
    with contextlib.suppress(MediaError):
        function(data, *arguments)


@pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow's remarks on damaged metadata
@pytest.mark.parametrize("name", sorted(PICTURES))
@settings(max_examples=40, deadline=None)
@given(hits=damage, cut=st.sampled_from([1.0, 1.0, 0.95, 0.5, 0.1]))
def test_pictures(name: str, hits: list[tuple[float, bytes]], cut: float) -> None:
    data = damaged(PICTURES[name], hits, cut)
    for function in (header, load_image, load_rgb, wire_image):
        harmless(function, data)


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write_video(tmp_path_factory.mktemp("video") / "clip.mp4", 40).read_bytes()


@settings(max_examples=25, deadline=None)
@given(hits=damage, cut=st.sampled_from([1.0, 1.0, 0.9, 0.5]), count=st.sampled_from([1, 8]))
def test_videos(clip: bytes, hits: list[tuple[float, bytes]], cut: float, count: int) -> None:
    harmless(read_frames, damaged(clip, hits, cut), Sampling(count=count))


@settings(max_examples=25, deadline=None)
@given(hits=damage, cut=st.sampled_from([1.0, 0.9, 0.01]))
def test_sounds(hits: list[tuple[float, bytes]], cut: float) -> None:
    data = damaged(encode_wav(tone(), 8000), hits, cut)
    for function in (load_audio, wire_audio):
        harmless(function, data)


def test_a_video_with_damage_in_the_middle_keeps_its_good_frames(clip: bytes, tmp_path: Path) -> None:
    start = clip.index(b"mdat") + 900
    path = tmp_path / "hit.mp4"
    path.write_bytes(clip[:start] + bytes(400) + clip[start + 400 :])
    assert 1 <= len(read_frames(path, Sampling(count=40))) <= 40


@pytest.mark.parametrize("read", [probe, load_audio])
@pytest.mark.parametrize("name", ["list.m3u8", "list.mp4", "list.ffconcat"])
def test_a_playlist_opens_no_other_file(clip: bytes, tmp_path: Path, name: str, read: Callable[[Any], Any]) -> None:
    (tmp_path / "other.mp4").write_bytes(clip)
    text = f"#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\nfile://{tmp_path}/other.mp4\n#EXT-X-ENDLIST\n"
    if name.endswith("concat"):
        text = "ffconcat version 1.0\nfile other.mp4\n"
    (tmp_path / name).write_text(text)
    for value in (tmp_path / name, text.encode()):
        with pytest.raises(MediaError, match="not a readable"):
            read(value)
