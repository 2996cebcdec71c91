"""Draw the demonstration data of the task ``mmie_demo``: ``python examples/make_mmie_demo.py [FOLDER]``.

The layout is that of the published data set (``data.json`` with conversations, ``images/``), but the set is small, and
every text and picture is our own. The same call writes the same records and pixels.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

DEFAULT_FOLDER = Path(__file__).parents[1] / "lmms_eval" / "tasks" / "mmie" / "demo"
SIZE = (96, 64)
COLOURS = {
    "red": (205, 45, 45), "blue": (40, 80, 200), "green": (40, 150, 70), "orange": (240, 130, 30),
}  # fmt: skip
ACTORS = ("kite", "boat", "snail", "balloon")
TOOLS = ("tower of blocks", "paper fan", "flower bed", "bookshelf")
FIELDS = ("Education", "Health", "Art")
MANY = 5
"""Number of pictures of the one question that has more than a judge accepts."""
Segment = dict[str, str | None]


class Book:
    """Collects records and pictures."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.records: list[dict[str, Any]] = []

    def picture(self, name: str, colour: str, places: list[tuple[int, int]], is_round: bool) -> str:
        """Draw shapes of one colour on white and return the path for the records."""
        image = Image.new("RGB", SIZE, "white")
        draw = ImageDraw.Draw(image)
        draw.line((0, 58, SIZE[0], 58), fill=(120, 120, 120))
        for x, y in places:
            box = (x - 8, y - 8, x + 8, y + 8)
            (draw.ellipse if is_round else draw.rectangle)(box, fill=COLOURS[colour])
        path = self.folder / "images" / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        image.save(path, optimize=True)
        return f"images/{name}.png"

    def add(self, tag: str, facts: tuple[str, str, str], question: list[Segment], answer: list[Segment]) -> None:
        """Add a record; ``facts`` are category, field and subfield."""
        category, field, subfield = facts
        self.records.append(
            {
                "id": f"{tag}-{len(self.records):02d}",
                "catagory": category,
                "field": field,
                "subfield": subfield,
                "conversations": [{"from": "human", "content": question}, {"from": "gpt", "content": answer}],
            }
        )


def story(book: Book, number: int) -> None:
    actor, colour = ACTORS[number % 4], list(COLOURS)[number // 4 % 4]
    shots = [book.picture(f"sa{number}_{shot}", colour, [(16 + 30 * shot, 46 - 12 * shot)], True) for shot in range(3)]
    book.add(
        "SA",
        ("Situational analysis", "Literature", ("Journeys", "Weather")[number % 2]),
        [
            {"text": f"A {colour} {actor} set out in the morning.", "image": shots[0]},
            {"text": "By noon it had come a good way. Tell how the day went on.", "image": shots[1]},
        ],
        [{"text": f"In the evening the {actor} was home, tired and glad.", "image": shots[2]}],
    )


def method(book: Book, number: int) -> None:
    thing, colour = TOOLS[number % 4], list(COLOURS)[(number + 1) % 4]
    steps = [
        book.picture(f"pbl{number}_{step}", colour, [(48, 50 - 17 * level) for level in range(step + 1)], False)
        for step in range(2)
    ]
    book.add(
        "PBL",
        ("Project-based learning", FIELDS[number % 3], f"{FIELDS[number % 3]} at home"),
        [{"text": f"How do I make a {colour} {thing}? This is how it begins.", "image": steps[0]}],
        [{"text": "Step 1. Lay out what you need.", "image": None}, {"text": "Step 2. Go on.", "image": steps[1]}],
    )


def problem(book: Book, number: int) -> None:
    colour, count = list(COLOURS)[number % 4], 1 + number % 4
    pictures = [
        book.picture(f"msr{number}_{part}", colour, [(14 + 22 * place, 40) for place in range(count)], part % 2 == 0)
        for part in range(MANY if number == 0 else 1 + number % 3)
    ]
    total = count * len(pictures)
    book.add(
        "MSR",
        ("Multi-step reasoning", "Mathematics", "Counting"),
        [
            {"text": f"How many {colour} shapes are there altogether?", "image": pictures[0]},
            *({"text": None, "image": picture} for picture in pictures[1:]),
        ],
        [{"text": f"There are {total}.", "image": None}],
    )


def make(folder: Path, each: int = 12) -> int:
    """Write ``each`` records for each category and return their number."""
    book = Book(folder)
    for number in range(each):
        for kind in (story, method, problem):
            kind(book, number)
    text = json.dumps(book.records, indent=1, ensure_ascii=False)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "data.json").write_text(f"{text}\n", encoding="utf-8")
    return len(book.records)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_FOLDER
    sys.stdout.write(f"{make(target)} records in {target}\n")
