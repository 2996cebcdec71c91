"""Draw a small MileBench: ``python examples/make_milebench_demo.py [FOLDER] [--all] [--samples N] [--size WxH]``.

The layout is that of the published data (``NAME/NAME.json``, ``NAME/NAME-adv.json``, ``NAME/images/``), but every text
and picture is our own. Without arguments, the data of ``milebench_demo`` are written again: one data set of each group,
with a few samples each. ``--all`` writes all 29, with 2 to 40 pictures per sample; ``--images N`` gives every sample N.
The same call writes the same files.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from lmms_eval.tasks.milebench.facts import TABLE, Dataset, datasets
from lmms_eval.utils.files import read_table

DEFAULT_FOLDER = Path(__file__).parents[1] / "lmms_eval" / "tasks" / "milebench" / "demo"
COLOURS = {
    "red": (205, 45, 45), "blue": (40, 80, 200), "green": (40, 150, 70), "yellow": (235, 200, 40),
    "black": (25, 25, 25), "orange": (240, 130, 30),
}  # fmt: skip
SHAPES = ("circle", "square", "triangle", "cross")
WORDS = ("harbour", "meadow", "lantern", "violin", "kettle", "compass", "orchard", "pebble", "ribbon", "saddle")
COUNTS = (2, 5, 8, 33, 3, 40, 12, 4)
DEMO_COUNTS = (2, 7, 4)
NEEDLE_DEPTHS = (0.0, 0.5, 1.0)


@dataclass(frozen=True)
class Thing:
    """The subject of a picture: a coloured shape, or a word."""

    colour: str = "black"
    shape: str = ""
    word: str = ""

    @property
    def file(self) -> str:
        return f"{self.word or f'{self.colour}_{self.shape}'}.png"

    @property
    def text(self) -> str:
        return f"{self.colour} {self.shape}" if self.shape else self.word


@dataclass
class Question:
    """A sample without its number."""

    context: str
    things: list[Thing]
    response: str
    choices: list[str] | None = None
    reworded: dict[str, str] = field(default_factory=dict)
    """Other words for options or references, for the adversarial variant."""
    more: dict[str, Any] = field(default_factory=dict)


def draw(thing: Thing, size: tuple[int, int]) -> Image.Image:
    width, height = size
    image = Image.new("RGB", size, "white")
    pen, colour = ImageDraw.Draw(image), COLOURS[thing.colour]
    side = min(width, height) * 0.7
    left, top = (width - side) / 2, (height - side) / 2
    box = (left, top, left + side, top + side)
    if thing.word:
        font = ImageFont.load_default(max(8, width // 7))
        pen.text((width / 2, height / 2), thing.word, fill=colour, font=font, anchor="mm")
    elif thing.shape == "circle":
        pen.ellipse(box, fill=colour)
    elif thing.shape == "square":
        pen.rectangle(box, fill=colour)
    elif thing.shape == "triangle":
        pen.polygon([(width / 2, top), (left, top + side), (left + side, top + side)], fill=colour)
    else:
        pen.rectangle((width / 2 - side / 8, top, width / 2 + side / 8, top + side), fill=colour)
        pen.rectangle((left, height / 2 - side / 8, left + side, height / 2 + side / 8), fill=colour)
    return image


def things(chance: random.Random, count: int) -> list[Thing]:
    """Yield all different things in random order, then again."""
    every = [Thing(colour, shape) for colour in COLOURS for shape in SHAPES]
    found: list[Thing] = []
    while len(found) < count:
        found += chance.sample(every, min(len(every), count - len(found)))
    return found


def frames(count: int, kind: str = "image") -> str:
    return "".join(f"{{{kind}#{number}}}" for number in range(1, count + 1))


def options(chance: random.Random, right: str, others: Sequence[str], count: int = 4) -> list[str]:
    wrong = sorted({other for other in others if other != right})
    found = [right, *chance.sample(wrong, min(count - 1, len(wrong)))]
    chance.shuffle(found)
    return found


def colour_of_frame(chance: random.Random, count: int) -> Question:
    shown, place = things(chance, count), chance.randrange(count)
    right = shown[place].colour
    return Question(
        f"Frames of a film: {frames(count)} Which colour has the shape of frame {place + 1}?", shown, right,
        options(chance, right, list(COLOURS)), {name: f"a {name} one" for name in COLOURS},
    )  # fmt: skip


def what_comes_last(chance: random.Random, count: int) -> Question:
    shown = things(chance, count)
    right = shown[-1].text
    every = [f"{colour} {shape}" for colour in COLOURS for shape in SHAPES]
    return Question(
        f"The scene begins {frames(count)} What is seen at its end?", shown, right, options(chance, right, every),
        {name: f"the {name}" for name in every},
    )  # fmt: skip


def is_it_there(chance: random.Random, count: int) -> Question:
    shown = things(chance, count)
    colour = chance.choice(list(COLOURS))
    right = "yes" if any(thing.colour == colour for thing in shown) else "no"
    return Question(
        f"{frames(count)} Is anything {colour} in these pictures?", shown, right, ["yes", "no"],
        {"yes": "it is there", "no": "nothing like it"},
    )  # fmt: skip


def captioned(chance: random.Random, count: int) -> Question:
    shown, place = things(chance, count), chance.randrange(count)
    kinds = ["table" if number % 3 == 2 else "image" for number in range(count)]
    page = " ".join(f"Exhibit {number}: {{{kind}#{number}}}." for number, kind in enumerate(kinds, 1))
    right = shown[place].shape
    return Question(
        f"{page}\nWhich shape has exhibit {place + 1}?", shown, right, options(chance, right, SHAPES),
        {name: f"the shape of a {name}" for name in SHAPES},
    )  # fmt: skip


def word_on_page(chance: random.Random, count: int) -> Question:
    shown = [Thing(word=WORDS[number % len(WORDS)]) for number in range(count)]
    chance.shuffle(shown)
    place = chance.randrange(count)
    right = shown[place].word
    return Question(
        f"Pages: {frames(count)} Which word stands on page {place + 1}?", shown, right, options(chance, right, WORDS),
        {name: f"the word {name}" for name in WORDS},
    )  # fmt: skip


def difference(chance: random.Random, count: int) -> Question:
    shown = things(chance, max(2, count))
    response = f"The {shown[0].text} became a {shown[-1].text}."
    return Question(
        f"{frames(len(shown))} What changed from the first to the last picture?", shown, response,
        reworded={response: f"Now there is a {shown[-1].text} and no {shown[0].text}."},
    )  # fmt: skip


def dialogue(chance: random.Random, count: int) -> Question:
    shown = [Thing(word=WORDS[number % len(WORDS)]) for number in range(count)]
    turns = "\n".join(f"User: And this? {{image#{number}}}\nGuide: Wait." for number in range(1, count + 1))
    right = chance.choice(shown).word
    place = 1 + [thing.word for thing in shown].index(right)
    return Question(
        f"{turns}\nUser: What did picture {place} say?", shown, right, reworded={right: f"the {right}"}
    )  # fmt: skip


def text_needle(chance: random.Random, count: int, number: int = 0) -> Question:
    shown, code = things(chance, count), str(chance.randrange(1000, 10000))
    depth = NEEDLE_DEPTHS[number % len(NEEDLE_DEPTHS)]
    lines = [f"On day {day} we walked past {{image#{day}}} and went on." for day in range(1, count + 1)]
    lines.insert(round(depth * count), f"The secret number is {code}.")
    return Question(
        " ".join(lines) + " What is the secret number?", shown, code, more={"depth": depth, "length": count}
    )  # fmt: skip


def image_needle(chance: random.Random, count: int, number: int = 0) -> Question:
    shown, code = things(chance, count), str(chance.randrange(1000, 10000))
    depth = NEEDLE_DEPTHS[number % len(NEEDLE_DEPTHS)]
    shown[round(depth * (count - 1))] = Thing(word=code)
    return Question(
        f"{frames(count)} One picture shows a number. Which?", shown, code, more={"depth": depth, "length": count}
    )  # fmt: skip


def retrieval(chance: random.Random, count: int) -> Question:
    shown = things(chance, max(3, count))
    place = chance.randrange(2, len(shown) + 1)
    shown[0] = shown[place - 1]
    listed = " ".join(f"image {number - 1}: {{image#{number}}}" for number in range(2, len(shown) + 1))
    choices = [f"image {number}" for number in range(1, len(shown))]
    return Question(
        f"Query: {{image#1}} Gallery: {listed} Which image of the gallery shows the same?", shown,
        f"image {1 + shown[1:].index(shown[0])}", choices,
    )  # fmt: skip


Maker = Callable[[random.Random, int], Question]
BY_GROUP: dict[str, Maker] = {
    "t1": what_comes_last, "t2": is_it_there, "t3": colour_of_frame, "t4": colour_of_frame, "s1": captioned,
    "s2": word_on_page, "s3": difference, "s4": difference, "s5": is_it_there, "i1": retrieval,
}  # fmt: skip


def question(facts: Dataset, number: int, count: int) -> Question:
    chance = random.Random(f"{facts.name} {number}")
    if facts.name == "MMCoQA":
        return dialogue(chance, count)
    if facts.category == "needle":
        return (text_needle if facts.name.startswith("Text") else image_needle)(chance, count, number)
    return BY_GROUP[facts.group](chance, count)


def level(count: int) -> str:
    return "Few" if count < 6 else "Many" if count > 31 else "Medium"


def sample(made: Question, number: int, adversarial: bool) -> dict[str, Any]:
    instance: dict[str, Any] = {
        "context": made.context,
        "images_path": [thing.file for thing in made.things],
        "combined_1_images": [f"{number}-0.jpg"],
    }
    words = made.reworded if adversarial else {}
    if made.choices is not None:
        choices = [words.get(choice, choice) for choice in made.choices]
        if adversarial:
            random.Random(number).shuffle(choices)
        instance["choice_list"] = choices
    return {
        "sample_id": number,
        "task_instruction_id": number % 2,
        "task_instance": instance,
        "response": words.get(made.response, made.response),
        "images_number": len(made.things),
        "image_quantity_level": level(len(made.things)),
        **made.more,
    }


def write_dataset(root: Path, facts: Dataset, counts: Sequence[int], size: tuple[int, int] = (64, 48)) -> Path:
    """Write one data set with a sample for each of ``counts`` and return its folder."""
    folder = root / facts.name
    (folder / "images").mkdir(parents=True, exist_ok=True)
    asked = [question(facts, number, count) for number, count in enumerate(counts)]
    for thing in {thing.file: thing for one in asked for thing in one.things}.values():
        draw(thing, size).save(folder / "images" / thing.file, optimize=True)
    for ending, adversarial in (("", False), ("-adv", True)):
        if adversarial and not facts.has_adversarial:
            continue
        data = [sample(one, number, adversarial) for number, one in enumerate(asked)]
        meta = {
            "dataset": facts.name,
            "split": "test",
            "num_sample": len(data),
            "task_instruction": ["Look at all pictures and answer.", "Answer by the pictures only."],
            "question_type": "open-ended" if asked[0].choices is None else "multi-choice",
        }
        text = json.dumps({"meta_data": meta, "data": data}, ensure_ascii=False, indent=1)
        (folder / f"{facts.name}{ending}.json").write_text(text + "\n", encoding="utf-8")
    return folder


def write_all(
    root: Path, counts: Sequence[int] = COUNTS, size: tuple[int, int] = (64, 48), names: Sequence[str] = ()
) -> list[Path]:
    """Write all 29 data sets, or the named ones, and return their folders."""
    wanted = [facts for facts in datasets().values() if not names or facts.name in names]
    return [write_dataset(root, facts, counts, size) for facts in wanted]


def demo_names() -> list[str]:
    """Return the names of the data sets of ``milebench_demo``."""
    return [row["name"] for row in read_table(TABLE) if row["demo"] == "yes"]


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=DEFAULT_FOLDER)
    parser.add_argument("--all", action="store_true", help="all 29 data sets")
    parser.add_argument("--samples", type=int, help="samples of each data set")
    parser.add_argument("--images", type=int, help="pictures of each sample")
    parser.add_argument("--size", default="64x48", help="width and height of a picture")
    given = parser.parse_args(words)
    width, height = (int(side) for side in given.size.split("x"))
    usual = COUNTS if given.all else DEMO_COUNTS
    number = given.samples or len(usual)
    counts = [given.images or usual[place % len(usual)] for place in range(number)]
    write_all(given.folder, counts, (width, height), () if given.all else demo_names())


if __name__ == "__main__":
    main()
