"""Draw coloured shapes in the style of ``megabench_demo``, with questions about them.

The prompts are built from the demo's own task descriptions and forms, so that the model sees what the harness sends.
The pictures and the combinations of words differ from the demo's: see :class:`guard.Guard`. Everything is determined
by the generator that is passed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import labels
import make_megabench_demo as demo
from cases import Asked, Picture, Scene
from labels import HUES, KINDS
from make_megabench_demo import Shape

GRIDS = {(demo.WIDTH, demo.HEIGHT): (5, 8), (96, 64): (4, 6)}
"""Rows and columns of tokens by the size of a canvas."""
_PLACES = ("first", "second", "third", "fourth", "fifth")


def picture_of(shapes: list[Shape], size: tuple[int, int] = (demo.WIDTH, demo.HEIGHT), side: str = "") -> Picture:
    return Picture(demo.canvas(shapes, size), labels.of_shapes(shapes, size, GRIDS[size], side))


# ---------------------------------------------------------------- rows of shapes


def row_scene(random: Random) -> Scene:
    """Draw one to five shapes side by side, with all questions that fit them."""
    count = random.choice((1, 2, 2, 3, 3, 3, 4, 4, 5))
    kinds = random.choices(KINDS if random.random() < 0.8 else random.sample(KINDS, 2), k=count)
    hues = random.choices(HUES if random.random() < 0.6 else random.sample(HUES, 2), k=count)
    if random.random() < 0.12:
        kinds = [kinds[0]] * count
    if random.random() < 0.12:
        hues = [hues[0]] * count
    step, margin = 1 / count, random.uniform(0.02, 0.05)
    top, bottom = random.uniform(0.22, 0.38), random.uniform(0.62, 0.78)
    shapes = []
    for number, (kind, hue) in enumerate(zip(kinds, hues, strict=True)):
        shift = random.uniform(-0.04, 0.04)
        box = (number * step + margin, top + shift, (number + 1) * step - margin, bottom + shift)
        shapes.append(Shape(kind, hue, box))
    return Scene(picture_of(shapes), _row_questions(random, kinds, hues))


def _row_questions(random: Random, kinds: Sequence[str], hues: Sequence[str]) -> list[Asked]:
    order = {"inventory": str({kind: kinds.count(kind) for kind in dict.fromkeys(kinds)})}
    hue = random.choice(hues) if random.random() < 0.8 else random.choice(HUES)
    found = [
        Asked("demo_colour_set", "Which colours are there?", {"colours": ", ".join(dict.fromkeys(hues))}),
        Asked("demo_left_to_right", "In which order do they stand?", {"order": str(list(kinds))}),
        Asked("demo_inventory", "What is there?", order),
        Asked("demo_count_colour", f"How many shapes are {hue}?", {"count": str(hues.count(hue))}),
        _letter(random, kinds),
    ]
    if "circle" in kinds or random.random() < 0.2:
        circles = {"count": str(kinds.count("circle"))}
        found.append(Asked("demo_count_circles", "How many circles are there?", circles))
    for kind, colour in random.sample(list(zip(kinds, hues, strict=True)), len(kinds)):
        if kinds.count(kind) == 1:
            found.append(Asked("demo_name_colour", f"What colour is the {kind}?", {"colour": colour}))
        if hues.count(colour) == 1:
            found.append(Asked("demo_name_shape", f"What kind of shape is the {colour} one?", {"shape": kind}))
    return found


def _letter(random: Random, kinds: Sequence[str]) -> Asked:
    options = list(KINDS) if random.random() < 0.7 else random.sample(KINDS, 3)
    choices = [(f"Which shape is {_PLACES[number]}?", kind) for number, kind in enumerate(kinds)]
    choices.append(("Which shape is last?", kinds[-1]))
    choices.append(("Which shape is first?", kinds[0]))
    if len(kinds) % 2:
        choices += [("What lies in the middle?", kinds[len(kinds) // 2])] * 3
    text, kind = random.choice(choices)
    listed = " ".join(f"({letter}) a {option}" for letter, option in zip("ABC", options, strict=True))
    return Asked("demo_pick_letter", f"{text} {listed}", {"letter": "ABC"[options.index(kind)]})


# ---------------------------------------------------------------- shapes anywhere


def _box(random: Random) -> tuple[float, float, float, float]:
    """Return a box on a grid of twentieths of the canvas."""
    width, height = random.randint(4, 10), random.randint(5, 11)
    left, top = random.randint(0, 19 - width), random.randint(0, 19 - height)
    return (left / 20, top / 20, (left + width) / 20, (top + height) / 20)


def _apart(boxes: Sequence[tuple[float, float, float, float]]) -> bool:
    return all(
        one[2] < other[0] or other[2] < one[0] or one[3] < other[1] or other[3] < one[1]
        for number, one in enumerate(boxes)
        for other in boxes[:number]
    )


def _boxes(random: Random, count: int) -> list[tuple[float, float, float, float]]:
    while True:
        boxes = [_box(random) for _ in range(count)]
        if _apart(boxes):
            return sorted(boxes)


def _tuple(values: Sequence[float]) -> str:
    return f"({', '.join(f'{value:g}' for value in values)})"


def place_scene(random: Random) -> Scene:
    """Draw one or two shapes anywhere, with questions about boxes, buttons and sides."""
    boxes = _boxes(random, random.choice((1, 2, 2)))
    hues = random.choices(HUES, k=2) if random.random() < 0.2 else random.sample(HUES, 2)
    kinds = random.choice((random.choices(KINDS, k=2), ["square", "square"], ["circle", random.choice(KINDS[1:])]))
    if random.random() < 0.5:
        kinds.reverse()
    shapes = [Shape(kind, hue, box) for kind, hue, box in zip(kinds, hues, boxes, strict=False)]
    found = []
    circles = [shape for shape in shapes if shape.kind == "circle"]
    squares = [shape for shape in shapes if shape.kind == "square"]
    if len(circles) == 1:
        found.append(Asked("demo_box_of_circle", "Where is the circle?", {"box": _tuple(circles[0].box)}))
    if squares:
        value = {"count": str(len(squares)), "boxes": f"[{', '.join(_tuple(shape.box) for shape in squares)}]"}
        found.append(Asked("demo_find_squares", "Where are the squares?", value))
    if len(squares) == len(shapes):
        found.append(_button(random, shapes))
    if len(shapes) == 2 and shapes[0].kind != shapes[1].kind:
        one, other = random.sample(shapes, 2)
        found += [*_sides(one, other), *_sides(other, one)]
    if not found:
        return place_scene(random)
    return Scene(picture_of(shapes), found)


def _button(random: Random, shapes: list[Shape]) -> Asked:
    shape = random.choice(shapes)
    both = len(shapes) == 2 and shapes[0].colour == shapes[1].colour
    shape = shapes[0] if both else shape
    left, top, right, bottom = shape.box
    x, y = (round((low + high) / 2 * labels.STEPS) / labels.STEPS for low, high in ((left, right), (top, bottom)))
    point = f"<point>{x:g}, {y:g}</point>"
    text = f"Press either of the {shape.colour} buttons." if both else f"Press the {shape.colour} button."
    return Asked("demo_press_button", text, {"point": point})


def _sides(one: Shape, other: Shape) -> list[Asked]:
    side = labels.side_of(one, other)
    text = f"Where is the {one.kind}, as seen from the {other.kind}?"
    return [Asked("demo_which_side", text, {"side": side})] if side else []


def swipe_scene(random: Random) -> Scene:
    """Draw three dots that grow along one axis."""
    side, place, size = (
        random.choice(("left", "right", "up", "down")),
        random.uniform(0.4, 0.6),
        random.uniform(0.8, 1.2),
    )
    shapes, hue = [], random.choice(HUES)
    for number, share in enumerate((0.13, 0.45, 0.8)):
        centre = share + random.uniform(-0.04, 0.04)
        if side in ("left", "up"):
            centre = 1 - centre
        half = size * (0.03 + 0.035 * number)
        x, y = (centre, place) if side in ("left", "right") else (place, centre)
        shapes.append(Shape("circle", hue, (x - half, y - half * 1.5, x + half, y + half * 1.5)))
    axis = "horizontal" if side in ("left", "right") else "vertical"
    asked = Asked("demo_swipe", "Follow the growing dots.", {"axis": axis, "side": side})
    return Scene(picture_of(shapes, side={"up": "above", "down": "below"}.get(side, side)), [asked])


def bar_scene(random: Random) -> Scene:
    """Draw a bar chart of one to four bars."""
    count = random.choice((1, 2, 2, 3, 3, 4))
    heights = {hue: random.randint(2, 19) / 20 for hue in random.sample(HUES, count)}
    if count > 1 and random.random() < 0.6:
        one, other = list(heights)[:2]
        ratio = random.choice((1.5, 2, 2, 3, 4, 2.5, 0.5))
        base = random.choice([step for step in range(2, 20) if 2 <= step * ratio <= 19])
        heights.update({one: base / 20, other: base * ratio / 20})
    hues = random.sample(list(heights), count)
    step, margin = 1 / count, random.uniform(0.03, 0.07)
    shapes = [
        Shape("square", hue, (number * step + margin, 1 - heights[hue], (number + 1) * step - margin, 1.0))
        for number, hue in enumerate(hues)
    ]
    found = [
        Asked("demo_bar_share", f"How high is the {hue} bar?", {"height": f"{heights[hue]:g}"})
        for hue in dict.fromkeys((random.choice(hues), hues[0]))
    ]
    if count > 1:
        one, other = list(heights)[:2]
        text = f"How many times as high as the {one} bar is the {other} bar?"
        found.append(Asked("demo_bar_ratio", text, {"ratio": f"{round(heights[other] / heights[one], 1):g}"}))
    return Scene(picture_of(shapes), found)
