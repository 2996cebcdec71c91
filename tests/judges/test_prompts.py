from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image

from lmms_eval.engine.prompts import content_fingerprint
from lmms_eval.errors import MediaError, TaskError
from lmms_eval.judges.prompts import bounded_picture, fill_template, user_turn
from tests.cases import for_each


def test_what_is_filled_in_is_no_template() -> None:
    assert fill_template("{a} {{}} {b!r}", {"a": "{b}", "b": "x"}, "here") == "{b} {} 'x'"


@for_each("template", ["{c}", "{a.__class__}", "{a[0]}", "{}", "{a", "{a:Q}"])
def test_templates_that_cannot_be_filled(template: str) -> None:
    with pytest.raises(TaskError, match="here"):
        fill_template(template, {"a": "text"}, "here")


def opened(value: object) -> Image.Image:
    assert isinstance(value, bytes)
    return Image.open(io.BytesIO(value))


def test_pictures_are_flattened_and_bounded(tmp_path: Path) -> None:
    plain = tmp_path / "plain.jpg"
    Image.new("RGB", (100, 50), "blue").save(plain)
    assert bounded_picture(str(plain)) == str(plain)
    Image.new("RGB", (2000, 500), "blue").save(tmp_path / "large.png")
    large = opened(bounded_picture(str(tmp_path / "large.png")))
    assert (large.size, large.mode, large.format) == ((1000, 250), "RGB", "JPEG")
    Image.new("RGBA", (20, 20), (0, 0, 0, 0)).save(tmp_path / "clear.png")
    assert opened(bounded_picture(str(tmp_path / "clear.png"))).getpixel((5, 5)) == (255, 255, 255)
    assert opened(bounded_picture(Image.new("L", (30, 10)), max_side=15)).size == (15, 5)
    with pytest.raises(MediaError):
        bounded_picture(str(tmp_path / "absent.png"))


def test_fingerprints_see_into_pictures() -> None:
    red, blue = (Image.new("RGB", (8, 8), colour) for colour in ("red", "blue"))
    prints = {content_fingerprint(user_turn(text, [image])) for text in "ab" for image in (red, blue)}
    assert len(prints) == 4
    assert content_fingerprint(user_turn("a", [red])) == content_fingerprint(user_turn("a", [red.copy()]))
