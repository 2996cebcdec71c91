from __future__ import annotations

import re
import zlib
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

import lmms_eval.viewer
from lmms_eval.plots import figure as plots
from lmms_eval.plots.bars import Bar, bar_panels
from tests.cases import for_each

STYLE = Path(lmms_eval.viewer.__file__).parent / "web" / "src" / "style.css"
TOKENS = {
    "bar": plots.COLOURS[0], "second": plots.COLOURS[1], "third": plots.COLOURS[2], "fourth": plots.COLOURS[3],
    "fifth": plots.COLOURS[4], "ink": plots.INK, "quiet": plots.QUIET, "line": plots.LINE, "bar-few": plots.FEW,
    "right": plots.RIGHT, "wrong": plots.WRONG,
}  # fmt: skip


def drawn(ending: str) -> bytes:
    return plots.picture(bar_panels("Title 模型", {"one": (Bar("a", 0.25, 0.1, 0.4),)}, "score"), ending)


@for_each("name, colour", TOKENS.items(), ids=TOKENS)
def test_colours_are_those_of_reports(name: str, colour: str) -> None:
    light = STYLE.read_text(encoding="utf-8").partition("[data-theme")[0]
    assert re.search(rf"--{name}: (#[0-9a-f]+);", light)[1] == colour


def test_pdf_files_hold_their_fonts() -> None:
    content = drawn(".pdf")
    assert content.startswith(b"%PDF-")
    found = content + b"".join(
        zlib.decompress(part)
        for part in re.findall(rb"FlateDecode[^>]*>>\s*stream\r?\n(.*?)endstream", content, re.DOTALL)
    )
    fonts = re.findall(rb"/BaseFont\s*/(\S+)", found)
    assert fonts and all(b"Type3" not in font for font in fonts)
    assert len(re.findall(rb"/FontFile2", found)) >= len(set(re.findall(rb"/FontName\s*/(\S+)", found))) > 0


def test_texts_of_svg_files_are_outlines() -> None:
    content = drawn(".svg").decode()
    assert "<text" not in content and "<path" in content


@for_each("ending", [".png", ".svg", ".pdf"])
def test_the_same_numbers_give_the_same_files(ending: str) -> None:
    assert drawn(ending) == drawn(ending)


@for_each(
    "text, most, shown",
    [
        ("short", 10, "short"),
        ("a" * 30, 9, "aaaaa…aaa"),
        ("模型" * 10, 11, "模型模型…型"),
        ("a\x1b\n b", 20, "a\\u001b b"),
    ],
)
def test_long_texts_are_cut_in_their_middle(text: str, most: int, shown: str) -> None:
    assert plots.shortened(text, most) == shown


@for_each(
    "limits, values, found",
    [((0, 1), [0.17], (0, 0.2)), ((0, 1), [0.9], (0, 1)), ((0, 100), [124, -3], (-3, 124)), ((0, 1), [], (0, 1)),
     ((0, 100), [38], (0, 40)), ((0, 1), [0.0], (0, 0.02))],
)  # fmt: skip
def test_axes_end_at_a_round_number(
    limits: tuple[float, float], values: list[float], found: tuple[float, float]
) -> None:
    assert plots.shown_limits(limits, values) == pytest.approx(found)
