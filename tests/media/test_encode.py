from __future__ import annotations

import base64
import io
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lmms_eval.errors import MediaError
from lmms_eval.media import Bounds, EncodedImage, WireOptions, encode_image, image_url, to_rgb, wire_image
from lmms_eval.media import encode as encode_module
from tests.cases import for_each
from tests.media.draw import encoded, picture
from tests.media.test_image import rotated_jpeg, transparent_palette


def decoded(wire: EncodedImage) -> Image.Image:
    data = base64.b64decode(wire.base64)
    assert len(data) == wire.nbytes
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


@for_each(
    ("image_format", "mode", "mime"),
    [
        ("JPEG", "RGB", "image/jpeg"), ("JPEG", "L", "image/jpeg"), ("PNG", "RGB", "image/png"),
        ("PNG", "L", "image/png"), ("PNG", "1", "image/png"), ("PNG", "P", "image/png"), ("WEBP", "RGB", "image/webp"),
    ],
)  # fmt: skip
def test_original_bytes_go_out_untouched(image_format: str, mode: str, mime: str, tmp_path: Path) -> None:
    data = encoded(picture(mode), image_format)
    path = tmp_path / "a.bin"
    path.write_bytes(data)
    for value in (path, str(path), data, {"bytes": data, "path": "x.png"}):
        wire = wire_image(value)
        assert (wire.mime, base64.b64decode(wire.base64), wire.untouched) == (mime, data, True)
    assert wire_image(data).data_url == f"data:{mime};base64,{base64.b64encode(data).decode()}"


@for_each(
    "data",
    [
        encoded(picture("RGBA"), "PNG"), encoded(picture("LA"), "PNG"), transparent_palette(), rotated_jpeg(),
        encoded(picture("CMYK"), "JPEG"), encoded(picture("I;16"), "PNG"), encoded(picture(), "GIF"),
        encoded(picture(), "BMP"), encoded(picture("RGBA"), "WEBP", lossless=True),
        encoded(picture(), "PNG", save_all=True, append_images=[picture("L").convert("RGB")]),
    ],
)  # fmt: skip
def test_pending_transforms_are_applied_and_encoded_without_loss(data: bytes) -> None:
    wire = wire_image(data)
    image = decoded(wire)
    assert wire.mime == "image/png" and not wire.untouched
    assert image.mode == "RGB" and "transparency" not in image.info
    assert image.getexif().get(274, 1) == 1
    from lmms_eval.media import load_image

    assert np.array_equal(np.asarray(image), np.asarray(to_rgb(load_image(data))))


def test_pictures_in_memory_are_encoded_without_loss() -> None:
    for mode in ("RGB", "L"):
        image = picture(mode)
        assert np.array_equal(np.asarray(decoded(wire_image(image))), np.asarray(image))


def test_limits_on_pixels_and_bytes() -> None:
    noise = Image.fromarray(np.random.default_rng(1).integers(0, 255, (128, 128, 3), dtype=np.uint8))
    data = encoded(noise, "PNG")
    assert wire_image(data, WireOptions(len(data), Bounds(max_pixels=128 * 128))).untouched
    small = wire_image(data, WireOptions(bounds=Bounds(max_pixels=4096)))
    assert decoded(small).size == (64, 64)
    tight = wire_image(data, WireOptions(9000))
    assert tight.nbytes <= 9000
    assert decoded(tight).size[0] > 32  # shrunk no further than needed
    with pytest.raises(MediaError, match="does not fit"):
        wire_image(data, WireOptions(40))


def test_jpeg_only_on_request() -> None:
    options = WireOptions(image_format="JPEG", quality=90)
    assert wire_image(picture("RGBA"), options=options).mime == "image/jpeg"
    assert wire_image(encoded(picture(), "PNG"), options=options).mime == "image/png"
    assert wire_image(picture(), options=WireOptions(image_format="WEBP")).mime == "image/webp"
    with pytest.raises(ValueError, match="unknown image format"):
        WireOptions(image_format="TGA")  # type: ignore[arg-type]


def test_lossless_webp_is_lossless() -> None:
    image = picture()
    back = Image.open(io.BytesIO(encode_image(image, "WEBP")))
    assert np.array_equal(np.asarray(back), np.asarray(image))


def test_a_picture_too_long_for_webp_becomes_png() -> None:
    long = Image.new("RGB", (16_384, 2))
    wire = wire_image(long, options=WireOptions(image_format="WEBP"))
    assert (wire.mime, decoded(wire).size) == ("image/png", long.size)


def test_metadata_of_the_source_does_not_leave() -> None:
    image = Image.open(io.BytesIO(rotated_jpeg()))
    image.load()
    for image_format in ("PNG", "JPEG", "WEBP"):
        back = Image.open(io.BytesIO(encode_image(image, image_format)))  # type: ignore[arg-type]
        assert len(back.getexif()) == 0
        assert back.size == image.size


@for_each("image_format", ["JPEG", "PNG", "WEBP"])
def test_cut_files_do_not_go_out(image_format: str) -> None:
    noise = Image.fromarray(np.random.default_rng(2).integers(0, 255, (96, 96, 3), dtype=np.uint8))
    data = encoded(noise, image_format)
    for cut in (data[: len(data) // 2], data[:-30]):
        with pytest.raises(MediaError):
            wire_image(cut)


def test_trailing_bytes_after_a_jpeg_are_no_damage() -> None:
    data = encoded(picture(), "JPEG") + bytes(10_000)
    assert wire_image(data).untouched


def test_results_are_kept_by_content(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data = encoded(picture("RGBA", (33, 21)), "PNG")
    path = tmp_path / "a.png"
    path.write_bytes(data)
    first = wire_image(data)

    def refuse(*_: object) -> bytes:
        raise AssertionError("encoded again")

    monkeypatch.setattr(encode_module, "encode_image", refuse)
    assert wire_image(path) == first == wire_image(data)
    with pytest.raises(AssertionError):
        wire_image(data, WireOptions(bounds=Bounds(max_pixels=100)))


def test_many_threads_agree() -> None:
    data = encoded(picture("RGBA", (50, 50)), "PNG")
    results: list[str] = []
    threads = [threading.Thread(target=lambda: results.append(wire_image(data).base64)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8 and len(set(results)) == 1


def test_remote_pictures_keep_their_address() -> None:
    assert image_url("https://example.org/a.png") == "https://example.org/a.png"
    assert image_url(picture()).startswith("data:image/png;base64,")


def test_unreadable_bytes_are_an_error() -> None:
    with pytest.raises(MediaError, match="not a readable picture"):
        wire_image(b"nothing")
