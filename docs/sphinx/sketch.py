"""Draw boxes and arrows as SVG. Text stays text, in light and dark mode, and is readable on a telephone."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import Literal
from xml.etree import ElementTree

WIDTH = 380
"""Width of every drawing. It fits a narrow page without smaller letters."""
_MARGIN, _GAP, _PAD = 8.0, 30.0, 9.0
_LINE = 15.0
_LETTER = 6.6
"""Assumed width of a letter, a little more than the mean of the system's fonts."""
_STYLE = """
svg { color-scheme: light dark; }
text { font: 12px system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; fill: #1c2430; }
.name { font-weight: 650; }
.label { font-size: 11px; fill: #47536a; }
.ground { fill: #ffffff; }
.box { stroke-width: 1.2; }
.person { fill: #f3f4f6; stroke: #6b7280; }
.work { fill: #e4eefc; stroke: #2f6bc4; }
.disk { fill: #e3f4e5; stroke: #2e8540; }
.model { fill: #fdf0d9; stroke: #b26a00; }
.lost { fill: #fbe5e5; stroke: #b3352f; }
.arrow { fill: none; stroke: #47536a; stroke-width: 1.4; }
.head { fill: #47536a; }
@media (prefers-color-scheme: dark) {
text { fill: #e8ebf0; }
.label { fill: #aab4c4; }
.ground { fill: #14181e; }
.person { fill: #23282f; stroke: #8b95a5; }
.work { fill: #16294a; stroke: #6ea2ea; }
.disk { fill: #14301a; stroke: #63b572; }
.model { fill: #3a2a10; stroke: #e0a458; }
.lost { fill: #3d1a1a; stroke: #e58a85; }
.arrow { stroke: #aab4c4; }
.head { fill: #aab4c4; }
}
"""

Kind = Literal["person", "work", "disk", "model", "lost"]


@dataclass(frozen=True, slots=True)
class Box:
    """A box with a name and a description."""

    kind: Kind
    name: str
    text: str = ""
    share: float = 1.0
    """Share of the row's width, relative to the shares of the others."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A box with its position."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    @property
    def end(self) -> float:
        return self.y + self.height


@dataclass(slots=True)
class Sketch:
    """A drawing that grows row by row."""

    name: str
    title: str
    says: str
    """Description of the drawing for people who do not see it."""
    _parts: list[ElementTree.Element] = field(default_factory=list)
    _placed: list[Placed] = field(default_factory=list)
    _last: float = 0.0
    """Lower edge of the last note."""
    _y: float = _MARGIN

    def row(self, *boxes: Box, gap: float = _GAP, between: float = 10.0) -> list[Placed]:
        """Place boxes side by side below the existing ones."""
        room = WIDTH - 2 * _MARGIN - between * (len(boxes) - 1)
        widths = [room * box.share / sum(each.share for each in boxes) for box in boxes]
        lines = [_lines(box, width) for box, width in zip(boxes, widths, strict=True)]
        height = 2 * _PAD + _LINE * max(len(each) for each in lines) - 2
        x, placed = _MARGIN, []
        for box, width, words in zip(boxes, widths, lines, strict=True):
            place = Placed(x, self._y, width, height)
            self._draw(box, place, words)
            placed.append(place)
            x += width + between
        self._y += height + gap
        self._placed += placed
        return placed

    def note(self, text: str, gap: float = 8.0) -> None:
        """Write a line between rows."""
        for line in textwrap.wrap(text, int((WIDTH - 2 * _MARGIN) / (_LETTER * 0.9))):
            self._text(_MARGIN, self._y + 10, line, "label", "start")
            self._y += _LINE
        self._last = self._y
        self._y += gap

    def down(self, upper: Placed, lower: Placed, label: str = "") -> None:
        """Draw an arrow from the lower edge of a box to the upper edge of another."""
        first, last = max(upper.x, lower.x), min(upper.x + upper.width, lower.x + lower.width)
        narrow = min(upper, lower, key=lambda place: place.width).middle
        x = narrow if first < narrow < last else (first + last) / 2
        if first < last:
            self._arrow([(x, upper.end), (x, lower.y)])
        else:
            level = lower.y - 12
            self._arrow(
                [(upper.middle, upper.end), (upper.middle, level), (lower.middle, level), (lower.middle, lower.y)]
            )
            x = lower.middle
        if label:
            self._text(x + 7, lower.y - 11, label, "label", "start")

    def across(self, left: Placed, right: Placed) -> None:
        """Draw an arrow to the neighbouring box."""
        height = left.y + left.height / 2
        self._arrow([(left.x + left.width, height), (right.x, height)])

    def svg(self) -> str:
        """Return the SVG document."""
        height = max([self._last, *(place.end for place in self._placed)]) + _MARGIN
        words = {"role": "img", "aria-labelledby": "title says", "font-family": "sans-serif"}
        size = {"width": f"{WIDTH}", "height": f"{height:g}", "viewBox": f"0 0 {WIDTH} {height:g}"}
        root = ElementTree.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size, **words})
        for tag, text in (("title", self.title), ("desc", self.says)):
            ElementTree.SubElement(root, tag, {"id": "title" if tag == "title" else "says"}).text = text
        ElementTree.SubElement(root, "style").text = _STYLE
        ElementTree.SubElement(
            root, "rect", {"class": "ground", "width": f"{WIDTH}", "height": f"{height:g}", "rx": "6"}
        )
        root.extend(self._parts)
        ElementTree.indent(root)
        return ElementTree.tostring(root, encoding="unicode") + "\n"

    def _draw(self, box: Box, place: Placed, lines: list[str]) -> None:
        size = {"x": f"{place.x:g}", "y": f"{place.y:g}", "width": f"{place.width:g}", "height": f"{place.height:g}"}
        self._parts.append(ElementTree.Element("rect", {"class": f"box {box.kind}", "rx": "5", **size}))
        names = len(_wrapped(box.name, place.width))
        for number, line in enumerate(lines):
            style = "name" if number < names else ""
            self._text(place.middle, place.y + _PAD + _LINE * number + 10, line, style, "middle")

    def _arrow(self, points: list[tuple[float, float]]) -> None:
        (x0, y0), (x, y) = points[-2:]
        path = "M" + " L".join(f"{px:g} {py:g}" for px, py in points)
        is_down = abs(y - y0) > abs(x - x0)
        head = f"M{x:g} {y:g} l-4 -7 h8 z" if is_down else f"M{x:g} {y:g} l-7 -4 v8 z"
        self._parts.append(ElementTree.Element("path", {"class": "arrow", "d": path}))
        self._parts.append(ElementTree.Element("path", {"class": "head", "d": head}))

    def _text(self, x: float, y: float, line: str, style: str, anchor: str) -> None:
        said = {"class": style} if style else {}
        text = ElementTree.Element("text", {**said, "x": f"{x:g}", "y": f"{y:g}", "text-anchor": anchor})
        text.text = line
        self._parts.append(text)


def _wrapped(text: str, width: float) -> list[str]:
    return textwrap.wrap(text, max(8, int((width - 8) / _LETTER)), break_on_hyphens=False)


def _lines(box: Box, width: float) -> list[str]:
    return [*_wrapped(box.name, width), *_wrapped(box.text, width)]
