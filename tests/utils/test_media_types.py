from __future__ import annotations

import io
from pathlib import Path

from PIL import Image

from lmms_eval.media.audio import encode_wav
from lmms_eval.utils.media_types import PICTURE_SUFFIXES, media_type_in, suffix_of
from tests.cases import for_each
from tests.media.draw import tone, write_video


@for_each(
    ("name", "suffix"),
    [
        ("JPEG", "jpg"), ("PNG", "png"), ("WEBP", "webp"), ("GIF", "gif"), ("BMP", "bmp"), ("TIFF", "tiff"),
        ("PPM", "ppm"), ("JPEG2000", "jp2"), ("ICO", "ico"),
    ],
)  # fmt: skip
def test_pictures(name: str, suffix: str) -> None:
    data = io.BytesIO()
    Image.new("RGB", (32, 32), "red").save(data, name)
    found = media_type_in(data.getvalue())
    assert found is not None and (found.kind, found.suffix) == ("image", suffix)
    assert found.suffix in PICTURE_SUFFIXES


def test_videos_and_sounds(tmp_path: Path) -> None:
    for suffix, codec in (("mp4", "libx264"), ("mkv", "libx264"), ("avi", "mpeg4")):
        found = media_type_in(write_video(tmp_path / f"a.{suffix}", 3, codec=codec).read_bytes())
        assert found is not None and (found.kind, found.suffix) == ("video", suffix)
    assert suffix_of(encode_wav(tone(), 8000)) == "wav"


@for_each(
    ("data", "suffix"),
    [
        (b"", "bin"), (b"R", "bin"), (b"RIFF\0\0\0\0JUNK", "bin"), (b"<svg/>", "bin"), (b"P5\n1 1", "ppm"),
        (b"Plain text", "bin"), (b"\xff", "bin"), (b"\xff\xf1\x50\x80", "bin"), (b"\xff\xfb\x90\0", "mp3"),
        (b"\0\0\0\x1cftypavif", "avif"), (b"\0\0\0\x1cftypM4A ", "m4a"), (b"OggS", "ogg"),
        (bytearray(b"fLaC"), "flac"),
    ],
)  # fmt: skip
def test_first_bytes(data: bytes, suffix: str) -> None:
    assert suffix_of(data) == suffix
