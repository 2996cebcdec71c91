from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lmms_eval.compat.media import (
    encode_image_to_base64,
    encode_image_to_base64_with_size_limit,
    encode_image_to_bytes,
    encode_image_to_data_url,
)
from lmms_eval.errors import MediaError
from tests.cases import for_each
from tests.media.draw import encoded, picture


def opened(text: str) -> Image.Image:
    image = Image.open(io.BytesIO(base64.b64decode(text)))
    image.load()
    return image


def test_original_bytes_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    path.write_bytes(encoded(picture(), "JPEG"))
    assert base64.b64decode(encode_image_to_base64(str(path))) == path.read_bytes()
    assert encode_image_to_data_url(path).startswith("data:image/jpeg;base64,")


@for_each(("name", "found"), [("PNG", "PNG"), ("jpeg", "JPEG"), ("JPG", "JPEG"), ("webp", "WEBP")])
def test_a_format_on_request(name: str, found: str) -> None:
    image = opened(encode_image_to_base64(picture(), image_format=name))
    assert image.format == found
    url = encode_image_to_data_url(picture(), image_format=name, mime_type="image/x")
    assert url.startswith("data:image/x;base64,")


def test_rgb_on_request() -> None:
    assert opened(encode_image_to_base64(picture("RGBA"), image_format="PNG")).mode == "RGBA"
    assert opened(encode_image_to_base64(picture("RGBA"), image_format="PNG", convert_rgb=True)).mode == "RGB"


def test_quality_changes_the_size() -> None:
    noise = Image.fromarray(np.random.default_rng(3).integers(0, 255, (64, 64, 3), dtype=np.uint8))
    low, high = (len(encode_image_to_base64(noise, image_format="JPEG", quality=quality)) for quality in (10, 95))
    assert low < high / 2


def test_size_limit_counts_bytes_before_base64() -> None:
    noise = Image.fromarray(np.random.default_rng(4).integers(0, 255, (128, 128, 3), dtype=np.uint8))
    for name in ("PNG", "JPEG"):
        text = encode_image_to_base64_with_size_limit(noise, max_size_bytes=4000, image_format=name)
        assert len(base64.b64decode(text)) <= 4000 and opened(text).format == name
    with pytest.raises(MediaError, match="does not fit"):
        encode_image_to_base64_with_size_limit(noise, max_size_bytes=10)


def test_unknown_formats_are_refused() -> None:
    with pytest.raises(ValueError, match="TGA"):
        encode_image_to_base64(picture(), image_format="TGA")


@for_each(("name", "mode"), [("PNG", "RGBA"), ("jpg", "RGB"), ("webp", "RGBA")])
def test_bytes_in_a_format(name: str, mode: str, tmp_path: Path) -> None:
    image = picture("RGBA")
    image.save(tmp_path / "a.png")
    for source in (image, str(tmp_path / "a.png")):
        made = Image.open(io.BytesIO(encode_image_to_bytes(source, image_format=name, quality=80, copy_if_pil=True)))
        assert (made.mode, made.size) == (mode, image.size)
    assert image.mode == "RGBA"


def test_a_mode_that_the_format_lacks_is_an_error() -> None:
    image = Image.new("CMYK", (4, 3))
    with pytest.raises(MediaError, match=r"CMYK.*convert_rgb=True"):
        encode_image_to_bytes(image)
    assert Image.open(io.BytesIO(encode_image_to_bytes(image, convert_rgb=True))).mode == "RGB"


def test_a_cache_is_filled_and_used() -> None:
    cache: dict[object, str] = {}
    image, kept = picture(), "kept"
    made = encode_image_to_base64(image, cache=cache, use_path_cache=False, copy_if_pil=True)
    assert list(cache.values()) == [made]
    cache[next(iter(cache))] = kept
    assert encode_image_to_base64(image.copy(), cache=cache) == kept
    assert encode_image_to_base64(image, cache=cache, image_format="WEBP") != kept
    assert encode_image_to_data_url(image, cache=cache).endswith(made)
    limited = encode_image_to_base64_with_size_limit(
        image, max_size_bytes=10**6, cache=cache, convert_rgb=True, copy_if_pil=True, resize_factor=0.75, min_side=100,
        resample=Image.Resampling.LANCZOS, use_path_cache=True,
    )  # fmt: skip
    assert limited in cache.values() and len(cache) == 4
