from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from lmms_eval.errors import DataError, MediaError
from lmms_eval.tasks.milebench.sheets import CELL, draw_sheet, plan_sheets
from tests.cases import for_each


def test_pictures_are_shared_out_evenly() -> None:
    found = plan_sheets(7, 10, 4)
    assert [(sheet.file, sheet.first, sheet.count) for sheet in found] == [
        ("7-0.jpg", 0, 3), ("7-1.jpg", 3, 3), ("7-2.jpg", 6, 3), ("7-3.jpg", 9, 1),
    ]  # fmt: skip
    assert len(plan_sheets(7, 5, 4)) == 3
    assert found[1].captions == ["Image 4", "Image 5", "Image 6"]
    assert (found[0].columns, found[0].rows, found[0].size) == (2, 2, (1600, 1600))


@for_each(("images", "sheets"), [(0, 1), (3, 0)])
def test_no_picture_or_no_sheet_is_an_error(images: int, sheets: int) -> None:
    with pytest.raises(DataError, match=f"{images} pictures cannot be put on {sheets} sheets"):
        plan_sheets(7, images, sheets)


def test_a_sheet_shows_every_picture_with_its_number(tmp_path: Path) -> None:
    files = []
    for colour in ("red", "green", "blue"):
        files.append(tmp_path / f"{colour}.png")
        Image.new("RGB", (30, 10), colour).save(files[-1])
    (sheet,) = plan_sheets(7, 3, 1)
    image = draw_sheet(sheet, files)
    assert image.size == (2 * CELL, 2 * CELL) and image.mode == "RGB"
    cells = [(0, 0), (CELL, 0), (0, CELL), (CELL, CELL)]
    assert [image.getpixel((x + 20, y + 20)) for x, y in cells] == [
        (255, 0, 0), (0, 128, 0), (0, 0, 255), (0, 0, 0),
    ]  # fmt: skip
    for x, y in cells[:3]:
        caption = image.crop((x + CELL // 4, y + CELL - 60, x + 3 * CELL // 4, y + CELL))
        colours = {colour for _, colour in caption.getcolors(100_000) or []}
        assert {(0, 0, 0), (255, 255, 255)} <= colours
    first, second = (image.crop((x, CELL - 60, x + CELL, CELL)) for x in (0, CELL))
    assert first.convert("1").tobytes() != second.convert("1").tobytes()


def test_larger_captions_take_more_room(tmp_path: Path) -> None:
    Image.new("RGB", (8, 8), "white").save(tmp_path / "a.png")
    (sheet,) = plan_sheets(7, 1, 1)
    black = [draw_sheet(sheet, [tmp_path / "a.png"], size).convert("L").histogram()[0] for size in (8, 16)]
    assert black[1] > 2 * black[0] > 0


def test_a_missing_picture_is_named(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match=r"gone\.png"):
        draw_sheet(plan_sheets(7, 1, 1)[0], [tmp_path / "gone.png"])
