from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from lmms_eval.errors import MediaError
from lmms_eval.media import Bounds, fit, flatten_alpha, header, load_image, load_rgb, shrink, to_rgb, wire_image
from lmms_eval.media.image import UNBOUNDED
from tests.cases import for_each
from tests.media.draw import encoded, picture


def rotated_jpeg(orientation: int = 6) -> bytes:
    exif = Image.Exif()
    exif[274] = orientation
    return encoded(picture(), "JPEG", quality=95, exif=exif)


def transparent_palette() -> bytes:
    return encoded(picture("P"), "PNG", transparency=0)


@for_each(
    ("data", "mode", "image_format", "alpha", "rotation"),
    [
        (encoded(picture(), "PNG"), "RGB", "PNG", False, 1),
        (encoded(picture("L"), "JPEG"), "L", "JPEG", False, 1),
        (encoded(picture("CMYK"), "JPEG"), "CMYK", "JPEG", False, 1),
        (encoded(picture("RGBA"), "PNG"), "RGBA", "PNG", True, 1),
        (encoded(picture("LA"), "PNG"), "LA", "PNG", True, 1),
        (encoded(picture("P"), "PNG"), "P", "PNG", False, 1),
        (transparent_palette(), "P", "PNG", True, 1),
        (encoded(picture("I;16"), "PNG"), "I;16", "PNG", False, 1),
        (encoded(picture(), "WEBP"), "RGB", "WEBP", False, 1),
        (rotated_jpeg(), "RGB", "JPEG", False, 6),
    ],
)
def test_header(data: bytes, mode: str, image_format: str, alpha: bool, rotation: int, tmp_path: Path) -> None:
    path = tmp_path / "picture"
    path.write_bytes(data)
    for value in (data, path):
        found = header(value)
        assert (found.width, found.height, found.nbytes, found.frames) == (40, 30, len(data), 1)
        assert (found.mode, found.format, found.has_alpha, found.exif_rotation) == (mode, image_format, alpha, rotation)


def test_header_does_not_decode(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("decoded")

    from PIL import ImageFile

    monkeypatch.setattr(ImageFile.ImageFile, "load", refuse)
    assert header(encoded_before).width == 40


encoded_before = encoded(picture("RGBA"), "PNG")


def test_header_counts_frames_of_animations() -> None:
    frames = [picture(), picture("L").convert("RGB")]
    for image_format in ("PNG", "WEBP"):
        assert header(encoded(frames[0], image_format, save_all=True, append_images=frames[1:])).frames == 2


def test_header_of_a_picture_in_memory() -> None:
    found = header(picture("LA"))
    assert (found.width, found.mode, found.has_alpha, found.nbytes, found.format) == (40, "LA", True, 0, "")


@for_each("image_format", ["PNG", "JPEG", "WEBP", "GIF", "TIFF"])
@for_each("share", [0.5, 0.9])
def test_cut_files_are_errors_that_name_the_file(image_format: str, share: float, tmp_path: Path) -> None:
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8))
    data = encoded(noise, image_format)
    path = tmp_path / "cut.img"
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(MediaError, match=r"cut\.img"):
        load_image(path)


@for_each("data", [b"", b"\x89PNG\r\n\x1a\n", b"not a picture", b"\xff\xd8\xff\xe0", bytes(1000)])
def test_what_is_no_picture_is_an_error(data: bytes) -> None:
    for read in (load_image, header):
        with pytest.raises(MediaError):
            read(data)


def test_damaged_png_chunk_is_an_error() -> None:
    data = bytearray(encoded(picture(), "PNG"))
    middle = data.index(b"IDAT") + 10
    data[middle : middle + 20] = bytes(20)
    with pytest.raises(MediaError, match="damaged"):
        load_image(bytes(data))


def test_exif_rotation_is_applied_unless_told_otherwise() -> None:
    turned = load_image(rotated_jpeg())
    assert turned.size == (30, 40)
    assert turned.getexif().get(274, 1) == 1
    assert load_image(rotated_jpeg(), rotate=False).size == (40, 30)


def test_flatten_lays_over_white() -> None:
    for mode in ("RGBA", "LA"):
        flat = flatten_alpha(picture(mode))
        assert flat.mode == "RGB"
        assert flat.getpixel((0, 0)) == (255, 255, 255)
        assert flat.getpixel((39, 29)) == picture(mode).convert("RGB").getpixel((39, 29))
    assert flatten_alpha(picture("RGBA"), (0, 0, 0)).getpixel((0, 0)) == (0, 0, 0)
    plain = picture()
    assert flatten_alpha(plain) is plain


def test_half_transparent_pixels_mix_with_the_background() -> None:
    image = Image.new("RGBA", (2, 2), (100, 0, 200, 128))
    assert flatten_alpha(image).getpixel((0, 0)) == pytest.approx((177, 127, 227), abs=1)


def test_transparent_colour_of_palette_and_rgb() -> None:
    image = load_image(transparent_palette())
    index = image.getpixel((0, 0))
    flat = to_rgb(load_image(encoded(picture("P"), "PNG", transparency=index)))
    assert flat.getpixel((0, 0)) == (255, 255, 255)
    keyed = load_image(encoded(Image.new("RGB", (4, 4), (9, 9, 9)), "PNG", transparency=(9, 9, 9)))
    assert to_rgb(keyed).getpixel((0, 0)) == (255, 255, 255)


def test_sixteen_bit_grey_is_scaled_not_clipped() -> None:
    flat = to_rgb(load_image(encoded(picture("I;16"), "PNG")))
    values = np.asarray(flat)[0, :, 0]
    assert flat.mode == "RGB"
    assert values.tolist() == [x * 65535 // 40 >> 8 for x in range(40)]


def test_wide_integers_within_a_byte_stay() -> None:
    assert to_rgb(Image.new("I", (2, 2), 200)).getpixel((0, 0)) == (200, 200, 200)
    assert to_rgb(Image.new("I", (2, 2), 51200)).getpixel((0, 0)) == (200, 200, 200)


@for_each("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "HSV", "I;16", "I", "F"])
def test_every_mode_becomes_rgb(mode: str) -> None:
    image = to_rgb(picture(mode))
    assert (image.mode, image.size) == ("RGB", (40, 30))


def test_shrink_keeps_proportions() -> None:
    image = picture(size=(400, 200))
    assert shrink(image, max_pixels=20_000).size == (200, 100)
    assert shrink(image, max_side=100).size == (100, 50)
    assert shrink(image, max_pixels=80_000, max_side=400) is image
    assert shrink(picture(size=(1000, 1)), max_side=10).size == (10, 1)
    assert shrink(picture("P", (400, 200)), max_side=100).mode == "RGB"
    with pytest.raises(ValueError, match="at least 1"):
        shrink(image, max_pixels=0)


def test_load_rgb_gives_every_caller_its_own_copy(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(encoded(picture("RGBA"), "PNG"))
    first = load_rgb(path)
    first.paste((1, 2, 3), (0, 0, 40, 30))
    assert load_rgb(path).getpixel((0, 0)) == (255, 255, 255)
    memory = picture()
    assert load_rgb(memory) is not memory
    assert load_rgb(path, bounds=Bounds(max_pixels=300)).size == (20, 15)


@for_each("orientation", [1, 3, 6])
@for_each("image_format", ["JPEG", "PNG"])
def test_load_rgb_decodes_a_large_jpeg_at_a_smaller_scale(
    image_format: str, orientation: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    exif = Image.Exif()
    exif[274] = orientation
    data = encoded(picture(size=(801, 601)), image_format, exif=exif, quality=95)
    scales: list[tuple[int, int]] = []
    real = Image.Image.resize
    monkeypatch.setattr(Image.Image, "resize", lambda self, *a, **k: scales.append(self.size) or real(self, *a, **k))
    for bound in (10_000, 100_000, 200_000, 1_000_000):
        scales.clear()
        found = load_rgb(data, bounds=Bounds(max_pixels=bound))
        sides = sorted(scales[0], reverse=True) if scales else []
        draft = {10_000: [201, 151], 100_000: [401, 301]}.get(bound) if image_format == "JPEG" else None
        assert sides == ([] if bound == 1_000_000 else draft or [801, 601])
        wanted = shrink(load_image(data), max_pixels=bound)
        assert found.size == wanted.size
        assert np.abs(np.asarray(found).astype(int) - np.asarray(wanted)).max() <= 6


def test_a_png_that_states_its_orientation_after_the_pixels_keeps_its_proportions() -> None:
    exif = Image.Exif()
    exif[274] = 6
    body = b"eXIf" + exif.tobytes()[6:]
    plain = encoded(picture(), "PNG")
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    data = plain[:-12] + chunk + plain[-12:]  # before the chunk that ends the file
    assert load_rgb(data).size == load_image(data).size == (30, 40)
    assert np.array_equal(np.asarray(load_rgb(data)), np.asarray(load_image(data)))


def test_load_rgb_sees_a_changed_file(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(encoded(Image.new("RGB", (4, 4), "red"), "PNG"))
    assert load_rgb(path).getpixel((0, 0)) == (255, 0, 0)
    path.write_bytes(encoded(Image.new("RGB", (8, 8), "blue"), "PNG"))
    assert load_rgb(path).getpixel((0, 0)) == (0, 0, 255)


def test_a_sound_is_no_picture() -> None:
    with pytest.raises(MediaError, match="not a picture"):
        load_image({"array": np.zeros(4), "sampling_rate": 8000})


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\n(ran) print\nshowpage\n%%EOF\n"


@for_each("name", ["a.eps", "a.png", "a.jpg"])
def test_a_picture_that_is_a_program_is_not_opened(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import EpsImagePlugin

    from lmms_eval.tasks.data.documents import decode_image

    started: list[object] = []
    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *args: started.append(args))
    path = tmp_path / name
    path.write_bytes(EPS)
    stored = {"bytes": EPS, "path": name}
    for read in (header, load_image, wire_image, lambda value: decode_image(stored, None, "here")):
        with pytest.raises(MediaError, match=r"not a readable picture|cannot be read"):
            read(path)
    assert not started


@for_each("image_format", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "JPEG2000", "ICO"])
def test_formats_that_are_opened(image_format: str, tmp_path: Path) -> None:
    picture(size=(32, 32)).save(tmp_path / "a.any", format=image_format)
    assert load_rgb(tmp_path / "a.any").size == (32, 32)


def test_a_shared_picture_is_that_of_the_table_and_cannot_be_drawn_on(tmp_path: Path) -> None:
    path = tmp_path / "shared.png"
    Image.new("RGB", (4, 3), (10, 20, 30)).save(path)
    first, again, own = load_rgb(path, shared=True), load_rgb(path, shared=True), load_rgb(path)
    assert again is first and own is not first
    own.putpixel((0, 0), (1, 2, 3))
    first.copy().paste((7, 7, 7), (0, 0, 4, 3))
    with pytest.raises(ValueError, match="readonly"):
        first.load()[0, 0] = (1, 2, 3)
    assert load_rgb(path).getcolors() == [(12, (10, 20, 30))]


SIDE = st.integers(1, 3000)
BOUND = st.none() | st.integers(1, 2_000_000)


@given(width=SIDE, height=SIDE, most=BOUND, side=st.none() | SIDE, least=BOUND, frames=st.integers(1, 40))
def test_a_size_is_within_its_bounds(
    width: int, height: int, most: int | None, side: int | None, least: int | None, frames: int
) -> None:
    bounds = Bounds(most, side, least)
    found = bounds.size((width, height))
    thin = 1 in found  # a side of one pixel cannot be made shorter
    assert min(found) >= 1
    assert most is None or thin or found[0] * found[1] <= most
    assert side is None or max(found) <= side
    if least is not None and (most is None or most > 2 * least) and side is None:
        assert thin or found[0] * found[1] >= min(least, width * height)
    if least is None:
        assert found[0] <= width and found[1] <= height
    share = bounds.of_frames(frames, 10_000)
    assert share.max_pixels == min(most or 10_000, 10_000 // frames)


def test_small_pictures_grow() -> None:
    small = picture(size=(8, 4))
    assert fit(small, Bounds(min_pixels=128)).size == (16, 8)
    assert fit(small, Bounds(min_pixels=128, max_side=12)).size == (12, 6)
    assert fit(small, Bounds(min_pixels=32)) is small
    assert fit(small, UNBOUNDED) is small
