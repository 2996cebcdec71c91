"""Pictures that are sent as the files that they were opened from, as long as these show them."""

from __future__ import annotations

import base64
import copy
import io
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import (
    ExifTags,
    Image,
    ImageChops,
    ImageDraw,
    ImageFile,
    ImageFilter,
    ImageOps,
    JpegImagePlugin,
    PngImagePlugin,
)

from lmms_eval.errors import MediaError
from lmms_eval.media import Bounds, EncodedImage, WireOptions, digest, load_rgb, to_rgb, wire_image
from lmms_eval.media import image as image_module
from lmms_eval.media.opened import Deferred, keep_originals
from lmms_eval.media.originals import KEEPING, carried, original_of
from lmms_eval.media.sent import recording
from lmms_eval.tasks.data.documents import decode_image
from tests.cases import for_each
from tests.media.draw import encoded, picture

Way = Callable[[bytes], Any]
FILES = {
    "jpeg": encoded(picture(), "JPEG"),
    "grey jpeg": encoded(picture("L"), "JPEG"),
    "png": encoded(picture(), "PNG"),
    "grey png": encoded(picture("L"), "PNG"),
    "palette png": encoded(picture("P"), "PNG"),
    "webp": encoded(picture(), "WEBP", lossless=True),
}


@pytest.fixture(autouse=True)
def kept() -> Iterator[None]:
    """Also without the registration of the other tests the pictures of this module know their files."""
    keep_originals()
    token = KEEPING.set(True)
    yield
    KEEPING.reset(token)


def by_column(data: bytes) -> Any:
    return decode_image({"bytes": data, "path": "x"}, None, "here")


def by_datasets(data: bytes) -> Any:
    return datasets.Image().decode_example({"bytes": data, "path": None})


def by_bytes(data: bytes) -> Any:
    return Image.open(io.BytesIO(data))


def by_file(data: bytes) -> Any:
    with open(_FOLDER / "picture", "wb") as file:
        file.write(data)
    with Image.open(_FOLDER / "picture") as image:
        return image.copy()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}._FOLDER", tmp_path)


_FOLDER = Path()
WAYS: dict[str, Way] = {"column": by_column, "datasets": by_datasets, "bytes": by_bytes, "file": by_file}


def plain(data: bytes) -> Image.Image:
    """The picture as Pillow alone decodes it."""
    image = image_module.open_image(io.BytesIO(data))
    image.load()
    assert type(image).__module__.startswith("PIL.")
    return image


def content(wire: EncodedImage) -> bytes:
    return base64.b64decode(wire.base64)


@for_each("name", FILES)
@for_each("way", WAYS)
@for_each("touch", [False, True])
def test_an_unchanged_picture_goes_out_as_its_file(way: str, name: str, touch: bool) -> None:
    data = FILES[name]
    image = WAYS[way](data)
    if touch:
        image.getpixel((0, 0))
    wires = [wire_image(image), wire_image(image.copy()), wire_image(copy.copy(image))]
    if image.mode == "RGB":
        wires.append(wire_image(image.convert("RGB")))
    assert [content(wire) for wire in wires] == [data] * len(wires)
    assert all(wire.untouched for wire in wires)
    assert digest(image) == digest(data)
    assert np.array_equal(np.asarray(image), np.asarray(plain(data)))


@for_each("way", WAYS)
def test_it_is_not_decoded_for_that(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    image = WAYS[way](FILES["jpeg"])
    if way == "datasets":  # decodes it itself
        return
    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda self: pytest.fail("decoded"))
    for made in (image, image.convert("RGB"), image.copy().convert("RGB")):
        assert content(wire_image(made)) == FILES["jpeg"]
        assert (made.mode, made.size, digest(made)) == ("RGB", (40, 30), digest(FILES["jpeg"]))


CHANGES: dict[str, Callable[[Any], Any]] = {
    "drawn": lambda image: ImageDraw.Draw(image).line((0, 0, 9, 9), fill=7) or image,
    "point": lambda image: image.putpixel((3, 3), 250 if image.mode != "RGB" else (1, 2, 3)) or image,
    "pasted": lambda image: image.paste(9, (0, 0, 5, 5)) or image,
    "resized": lambda image: image.resize((20, 15)),
    "resized to its own size": lambda image: image.rotate(3),
    "cropped": lambda image: image.crop((0, 0, 39, 30)),
    "thumbnail": lambda image: image.thumbnail((16, 16)) or image,
    "mirrored": lambda image: image.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
    "turned": lambda image: image.transpose(Image.Transpose.ROTATE_180),
    "filtered": lambda image: image.convert("RGB").filter(ImageFilter.BLUR),
    "inverted": lambda image: ImageChops.invert(image.convert("RGB")),
    "grey": lambda image: image.convert("L").point(lambda value: value // 2),
    "drawn as a copy": lambda image: CHANGES["drawn"](image.convert("RGB")),
    "alpha": lambda image: image.putalpha(100) or image,
    "from pixels": lambda image: Image.fromarray(255 - np.asarray(image.convert("RGB"))),
}  # fmt: skip


STEPS: dict[str, Callable[[Any], Any]] = {
    "copy": lambda image: image.copy(),
    "convert": lambda image: image.convert("RGB"),
    "look": lambda image: (image.getpixel((0, 0)), image)[1],
}


@for_each("change", CHANGES)
@for_each("name", ["jpeg", "grey jpeg", "png", "palette png", "webp"])
@for_each("way", WAYS)
def test_a_changed_picture_is_sent_as_it_is(way: str, name: str, change: str) -> None:
    image = WAYS[way](FILES[name])
    made = CHANGES[change](image)
    wire = wire_image(made)
    assert not wire.untouched
    wanted = CHANGES[change](plain(FILES[name]))
    if change != "thumbnail":  # of a file not decoded yet it is made from a smaller decoding
        assert np.array_equal(np.asarray(made), np.asarray(wanted))
    assert np.array_equal(np.asarray(plain(content(wire)).convert("RGB")), np.asarray(to_rgb(made)))


def test_a_thumbnail_of_a_column_is_that_of_the_decoded_picture() -> None:
    data = encoded(picture(size=(640, 480)), "JPEG")
    made, wanted = by_column(data), plain(data)
    made.thumbnail((100, 100))
    wanted.thumbnail((100, 100))
    assert made.tobytes() == wanted.tobytes()


def test_drawing_on_a_copy_leaves_the_picture_alone() -> None:
    image = by_column(FILES["png"])
    drawn = image.convert("RGB")
    ImageDraw.Draw(drawn).rectangle((0, 0, 9, 9), fill="red")
    assert content(wire_image(image)) == FILES["png"]
    assert not wire_image(drawn).untouched
    ImageDraw.Draw(image).rectangle((0, 0, 9, 9), fill="red")
    assert not wire_image(image).untouched
    assert image.tobytes() == drawn.tobytes()


def test_a_change_taken_back_is_no_change() -> None:
    image = by_bytes(FILES["png"])
    before = image.getpixel((2, 2))
    image.putpixel((2, 2), (1, 2, 3))
    assert original_of(image) is None
    image.putpixel((2, 2), before)
    assert content(wire_image(image)) == FILES["png"]


@given(st.lists(st.sampled_from(sorted(CHANGES | STEPS)), max_size=4), st.sampled_from(sorted(FILES)))
def test_whatever_a_task_does_the_server_sees_its_picture(steps: list[str], name: str) -> None:
    image = by_bytes(FILES[name])
    for step in steps:
        if image.mode == "RGBA":
            image = image.convert("RGB")
        image = (CHANGES | STEPS)[step](image)
    wire = wire_image(image)
    assert np.array_equal(np.asarray(plain(content(wire)).convert("RGB")), np.asarray(to_rgb(image)))


def turned(image_format: str, orientation: int) -> bytes:
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    return encoded(picture(), image_format, exif=exif)


def xmp_turned() -> bytes:
    text = PngImagePlugin.PngInfo()
    text.add_itxt("XML:com.adobe.xmp", '<x:xmpmeta><rdf:Description tiff:Orientation="6"/></x:xmpmeta>')
    return encoded(picture(), "PNG", pnginfo=text)


def late_exif() -> bytes:
    """A PNG whose orientation stands behind its pixels."""
    data = turned("PNG", 6)
    start = data.index(b"eXIf") - 4
    end = start + 12 + int.from_bytes(data[start : start + 4], "big")
    tail = data.index(b"IEND") - 4
    return data[:start] + data[end:tail] + data[start:end] + data[tail:]


TURNED = {
    "jpeg": turned("JPEG", 6), "webp": turned("WEBP", 3), "png": turned("PNG", 8), "mirrored": turned("JPEG", 2),
    "xmp": xmp_turned(), "late": late_exif(),
}  # fmt: skip


@for_each("name", TURNED)
@for_each("way", ["column", "bytes", "datasets"])
@for_each("touch", [False, True])
def test_a_file_with_an_orientation_is_never_sent_itself(way: str, name: str, touch: bool) -> None:
    """Servers that heed the tag would show it otherwise than those that do not."""
    image = WAYS[way](TURNED[name])
    if touch:
        image.load()
    for shown in (image, image.convert("RGB"), ImageOps.exif_transpose(image)):
        wire = wire_image(shown)
        sent = plain(content(wire))
        assert not wire.untouched
        assert sent.getexif().get(ExifTags.Base.Orientation, 1) == 1
        assert np.array_equal(np.asarray(sent), np.asarray(shown))
    upright = ImageOps.exif_transpose(plain(TURNED[name]))
    assert np.array_equal(np.asarray(ImageOps.exif_transpose(image)), np.asarray(upright))
    if way != "bytes":
        assert np.array_equal(np.asarray(image), np.asarray(upright))


@for_each("image_format", ["JPEG", "PNG", "WEBP"])
@for_each("way", WAYS)
def test_a_file_that_says_that_it_is_upright_is_sent(way: str, image_format: str) -> None:
    data = turned(image_format, 1)
    image = WAYS[way](data)
    assert content(wire_image(image)) == data
    assert content(wire_image(ImageOps.exif_transpose(image))) == data


def sixteen_bits() -> bytes:
    """A 16-bit RGB PNG, of which Pillow keeps 8 bits."""
    import struct
    import zlib

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = b"".join(b"\0" + bytes(range(24)) for _ in range(4))
    header = struct.pack(">IIBBBBB", 4, 4, 16, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


@for_each(
    "data",
    [
        encoded(picture("CMYK"), "JPEG"), encoded(picture("RGBA"), "PNG"), encoded(picture("LA"), "PNG"),
        encoded(picture(), "TIFF"), encoded(picture(), "BMP"), encoded(picture(), "GIF"), sixteen_bits(),
        encoded(picture("I;16"), "PNG"), encoded(picture("RGBA"), "WEBP", lossless=True),
        encoded(picture(), "PNG", save_all=True, append_images=[picture("L").convert("RGB")]),
        encoded(picture(), "WEBP", save_all=True, append_images=[picture("L").convert("RGB")]),
        encoded(picture(), "PNG", transparency=(0, 0, 90)),
    ],
)  # fmt: skip
@for_each("way", WAYS)
def test_other_files_are_encoded_as_before(way: str, data: bytes) -> None:
    image = WAYS[way](data)
    wire = wire_image(image)
    assert (wire.untouched, wire.mime) == (False, "image/png")
    assert np.array_equal(np.asarray(plain(content(wire)).convert("RGB")), np.asarray(to_rgb(plain(data))))


def test_the_first_picture_of_several_in_a_jpeg() -> None:
    data = encoded(picture(), "MPO", save_all=True, append_images=[picture("L").convert("RGB")])
    image = by_bytes(data)
    assert image.format == "MPO"
    assert content(wire_image(image)) == content(wire_image(by_column(data))) == content(wire_image(data)) == data
    image.seek(1)
    wire = wire_image(image)
    assert not wire.untouched
    assert np.array_equal(np.asarray(plain(content(wire))), np.asarray(image))


def test_limits_hold() -> None:
    image = by_column(FILES["png"])
    small = wire_image(image, WireOptions(bounds=Bounds(max_pixels=300)))
    assert (small.untouched, small.size[0] * small.size[1] <= 300) == (False, True)
    assert wire_image(by_column(FILES["png"]), options=WireOptions(max_bytes=200)).nbytes <= 200


@for_each("name", ["jpeg", "png", "webp"])
def test_a_cut_file_is_an_error_where_it_was_one(name: str) -> None:
    data = FILES[name][: len(FILES[name]) * 2 // 3]
    with pytest.raises(MediaError, match=r"^here: picture .* cannot be read"):
        by_column(data)
    with pytest.raises((MediaError, OSError)):
        wire_image(by_bytes(data))
    with pytest.raises(OSError):
        by_bytes(data).convert("RGB")


def test_damage_that_is_seen_when_the_pixels_are_needed_names_the_place() -> None:
    data = bytearray(FILES["png"])
    data[data.index(b"IDAT") + 8] ^= 0xFF
    image = by_column(bytes(data))
    with pytest.raises(MediaError, match=r"^here: picture"):
        image.load()


def test_what_is_recorded_is_what_was_sent(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    path.write_bytes(FILES["jpeg"])
    with recording() as media:
        wire_image(Image.open(path))
        wire_image(Image.open(path).convert("RGB"))
        wire_image(by_column(FILES["jpeg"]))
        drawn = Image.open(path).convert("RGB")
        drawn.putpixel((0, 0), (1, 2, 3))
        wire = wire_image(drawn)
    known = {"path": str(path), "sha256": digest(FILES["jpeg"]), "bytes": len(FILES["jpeg"])}
    told = [{key: one.to_dict().get(key) for key in ("path", "sha256", "bytes")} for one in media]
    assert told[:3] == [known, known, {**known, "path": None}]
    assert told[3] == {"path": str(path), "sha256": digest(drawn), "bytes": wire.nbytes}
    assert digest(drawn) != known["sha256"]


def test_a_local_model_gets_the_same_pixels_without_the_file() -> None:
    for name, data in FILES.items():
        wanted = load_rgb(data)
        for way in WAYS.values():
            image = load_rgb(way(data))
            assert (image.tobytes(), carried(image)) == (wanted.tobytes(), None), name


def test_the_file_counts_as_memory() -> None:
    data = FILES["jpeg"]
    image = by_column(data)
    assert image_module.memory_bytes(image) == 40 * 30 * 4 + len(data)
    image.load()
    assert image_module.memory_bytes(image) == 40 * 30 * 4 + len(data)
    assert image_module.memory_bytes(plain(data)) == 40 * 30 * 4


def test_pictures_stay_what_they_are_for_tasks(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    path.write_bytes(FILES["jpeg"])
    with Image.open(path) as image:
        assert isinstance(image, JpegImagePlugin.JpegImageFile)
        assert (image.format, image.filename, image.mode, image.size) == ("JPEG", str(path), "RGB", (40, 30))
        made = image.convert("RGB")
    path.unlink()
    assert made.format is None
    assert made == made.copy()
    assert type(made) is Image.Image
    column = by_column(FILES["jpeg"])
    assert (column.format, column.mode, column.size, isinstance(column, Image.Image)) == ("JPEG", "RGB", (40, 30), True)
    assert pickle.loads(pickle.dumps(column)).tobytes() == plain(FILES["jpeg"]).tobytes()
    assert copy.deepcopy(by_column(FILES["jpeg"])).tobytes() == plain(FILES["jpeg"]).tobytes()
    buffer = io.BytesIO()
    by_column(FILES["png"]).save(buffer, "PNG")
    assert Image.open(buffer).info == {}


def test_many_threads_decode_a_picture_alike() -> None:
    data = encoded(picture(size=(400, 300)), "PNG")
    for image in (by_column(data), by_bytes(data)):
        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(lambda image: image.tobytes(), [image] * 4)) == [plain(data).tobytes()] * 4
        assert content(wire_image(image)) == data


def test_drafts_are_not_the_whole_picture() -> None:
    data = encoded(picture(size=(640, 480)), "JPEG")
    for touch in (False, True):
        image = by_bytes(data)
        image.draft("RGB", (160, 120))
        if touch:
            image.load()
        assert not wire_image(image).untouched
        assert image.size == (160, 120)


def test_deferred_is_plain_once_it_is_seen() -> None:
    image = by_column(FILES["jpeg"])
    assert type(image) is Deferred
    image.getpixel((0, 0))
    assert type(image) is Image.Image
