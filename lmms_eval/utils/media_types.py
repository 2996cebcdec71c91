"""Kinds of media by their first bytes, since data often give neither a name nor a type."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Kind = Literal["image", "video", "audio"]


class MediaType(Struct, frozen=True):
    """A format of media."""

    kind: Kind
    suffix: str
    """Usual suffix of file names, without the dot."""


_FIRST: tuple[tuple[bytes, MediaType], ...] = (
    (b"\xff\xd8\xff", MediaType("image", "jpg")),
    (b"\x89PNG\r\n\x1a\n", MediaType("image", "png")),
    (b"GIF87a", MediaType("image", "gif")),
    (b"GIF89a", MediaType("image", "gif")),
    (b"BM", MediaType("image", "bmp")),
    (b"II*\x00", MediaType("image", "tiff")),
    (b"MM\x00*", MediaType("image", "tiff")),
    (b"\x00\x00\x00\x0cjP  \r\n\x87\n", MediaType("image", "jp2")),
    (b"\x00\x00\x01\x00", MediaType("image", "ico")),
    (b"fLaC", MediaType("audio", "flac")),
    (b"OggS", MediaType("audio", "ogg")),
    (b"ID3", MediaType("audio", "mp3")),
    (b"\x1aE\xdf\xa3", MediaType("video", "mkv")),
    (b"\x00\x00\x01\xba", MediaType("video", "mpg")),
    (b"\x00\x00\x01\xb3", MediaType("video", "mpg")),
    (b"FLV\x01", MediaType("video", "flv")),
)
"""First bytes and their formats."""
_RIFF = {
    b"WEBP": MediaType("image", "webp"),
    b"WAVE": MediaType("audio", "wav"),
    b"AVI ": MediaType("video", "avi"),
}
"""Formats of RIFF files by the bytes 8 to 11."""
_BRANDS = {b"avif": ("image", "avif"), b"avis": ("image", "avif"), b"M4A ": ("audio", "m4a"), b"M4B ": ("audio", "m4a")}
"""Brands of ISO files (bytes 8 to 11 after ``ftyp``) that are not videos."""
_MP4 = MediaType("video", "mp4")
_MPEG_AUDIO = MediaType("audio", "mp3")
_PNM = MediaType("image", "ppm")
PICTURE_SUFFIXES = frozenset(
    [one.suffix for _, one in _FIRST if one.kind == "image"] + [_RIFF[b"WEBP"].suffix, _BRANDS[b"avif"][1], _PNM.suffix]
)
"""Suffixes of pictures."""


def media_type_in(data: bytes | bytearray) -> MediaType | None:
    """Return the format that the first bytes show (32 are enough), or ``None`` for an unknown one."""
    head = bytes(data[:32])
    if head[:4] == b"RIFF":
        return _RIFF.get(head[8:12])
    if head[4:8] == b"ftyp":
        brand = _BRANDS.get(head[8:12])
        return _MP4 if brand is None else MediaType(brand[0], brand[1])  # type: ignore[arg-type]
    found = next((found for first, found in _FIRST if head.startswith(first)), None)
    if found is not None:
        return found
    if len(head) > 2 and head[:1] == b"P" and head[1:2] in b"123456" and head[2:3].isspace():
        return _PNM
    # Frame sync of MPEG audio, layers 3 to 1; an AAC stream has layer 0.
    return _MPEG_AUDIO if len(head) > 1 and head[0] == 0xFF and head[1] & 0xE6 in (0xE2, 0xE4, 0xE6) else None


def suffix_of(data: bytes | bytearray) -> str:
    """Return the suffix of a file with these bytes, without the dot; ``bin`` for an unknown format."""
    found = media_type_in(data)
    return "bin" if found is None else found.suffix
