from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from lmms_eval.errors import MediaError
from lmms_eval.tasks._task_utils.pictures import image_part, open_image


def test_a_plain_picture_is_its_path(tmp_path: Path) -> None:
    Image.new("RGB", (5, 4), "red").save(tmp_path / "a.png")
    assert image_part(tmp_path / "a.png") == {"type": "image", "url": str(tmp_path / "a.png")}
    assert open_image(tmp_path / "a.png").getpixel((0, 0)) == (255, 0, 0)


def test_transparency_is_laid_over_white(tmp_path: Path) -> None:
    Image.new("RGBA", (5, 4), (0, 0, 255, 0)).save(tmp_path / "a.png")
    url = image_part(tmp_path / "a.png")["url"]
    assert (url.mode, url.getpixel((0, 0))) == ("RGB", (255, 255, 255))


def test_a_missing_picture(tmp_path: Path) -> None:
    for function in (image_part, open_image):
        with pytest.raises(MediaError, match=r"gone\.png"):
            function(tmp_path / "gone.png")
