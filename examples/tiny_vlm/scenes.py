"""Training cases of the embedded model: drawings in the style of ``megabench_demo`` and questions about them.

The prompts are built from the demo's own task descriptions and forms, so that the model sees what the harness sends.
The pictures and the combinations of words are others: see :class:`guard.Guard`. Everything follows from the generator
that is passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import make_megabench_demo as demo
from make_megabench_demo import COLOURS, Query, Shape
from megabench_demo_tasks import TASKS
from PIL import Image, ImageDraw, ImageFont

KINDS = ("circle", "square", "triangle")
HUES = tuple(COLOURS)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


SIGN_WORDS = _words(
    "open until noon wet paint mind the step closed exit stop push pull slow danger no entry keep left right dogs "
    "milk fresh bread quiet please school ahead one way taxi only lift stairs cash gate water hot cold north south "
    "seven days a week not in use"
)
"""All words that the model can read. Those of the demo's single cards occur in longer signs only."""
COMMON_WORDS = _words(
    "open until noon wet paint mind the step closed exit stop push pull slow milk bread gate stairs north south water "
    "hot cold taxi lift"
)
TASK_BY_NAME = {task.name: task for task in TASKS}
HELD_OUT_TEXTS = frozenset(
    next(iter(query.answer.values())).lower()
    for name in ("demo_read_sign", "demo_read_word")
    for query in TASK_BY_NAME[name].queries
)
MOST_TURNS = 4
_PLACES = ("first", "second", "third", "fourth", "fifth")


@dataclass(frozen=True, slots=True)
class Turn:
    """One question as the harness words it, and the reply to learn. Turns of a case do not see each other."""

    prompt: str
    reply: str


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """Pictures and one or more turns about them; a demonstration's picture comes first."""

    images: tuple[Image.Image, ...]
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a task: its wording and its answer."""

    task: str
    text: str
    answer: dict[str, Any]


Scene = tuple[Image.Image, list[Asked]]


def turn_of(asked: Asked, pictures: str = "<image>", example: Asked | None = None) -> Turn:
    """Description, demonstration and question, joined as ``lmms_eval.tasks.megabench.prompts.plain_text`` does."""
    shown = Query(example.text, example.answer, {"example.png": _nothing}) if example else None
    task = replace(TASK_BY_NAME[asked.task], example=shown)
    query = f"{pictures}\nQuestion: {asked.text}"
    return Turn("\n".join((task.description, demo.example_text(task), query)), demo.reply_of(task, asked.answer))


def _nothing(_: Any) -> None:
    """Stands for a drawing where only the number of pictures counts."""


# ---------------------------------------------------------------- rows of shapes


def row_scene(random: Random) -> Scene:
    """One to five shapes side by side, with all questions that fit them."""
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
    return demo.canvas(shapes), _row_questions(random, kinds, hues)


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
    """A box on a grid of a twentieth."""
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
    """One or two shapes anywhere: boxes, buttons and sides."""
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
        found += _sides(*random.sample(shapes, 2))
    if not found:
        return place_scene(random)
    return demo.canvas(shapes), found


def _button(random: Random, shapes: list[Shape]) -> Asked:
    shape = random.choice(shapes)
    both = len(shapes) == 2 and shapes[0].colour == shapes[1].colour
    shape = shapes[0] if both else shape
    left, top, right, bottom = shape.box
    point = f"<point>{round((left + right) / 2, 2):g}, {round((top + bottom) / 2, 2):g}</point>"
    text = f"Press either of the {shape.colour} buttons." if both else f"Press the {shape.colour} button."
    return Asked("demo_press_button", text, {"point": point})


def _sides(one: Shape, other: Shape) -> list[Asked]:
    across = (one.box[0] + one.box[2] - other.box[0] - other.box[2]) / 2
    down = (one.box[1] + one.box[3] - other.box[1] - other.box[3]) / 2
    if abs(abs(across) - abs(down)) < 0.15:
        return []
    side = ("left" if across < 0 else "right") if abs(across) > abs(down) else ("above" if down < 0 else "below")
    text = f"Where is the {one.kind}, as seen from the {other.kind}?"
    return [Asked("demo_which_side", text, {"side": side})]


def swipe_scene(random: Random) -> Scene:
    """Three dots that grow along one axis."""
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
    return demo.canvas(shapes), [Asked("demo_swipe", "Follow the growing dots.", {"axis": axis, "side": side})]


def bar_scene(random: Random) -> Scene:
    """A bar chart of one to four bars."""
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
    hue = random.choice(hues)
    found = [Asked("demo_bar_share", f"How high is the {hue} bar?", {"height": f"{heights[hue]:g}"})]
    if count > 1:
        one, other = list(heights)[:2]
        text = f"How many times as high as the {one} bar is the {other} bar?"
        found.append(Asked("demo_bar_ratio", text, {"ratio": f"{round(heights[other] / heights[one], 1):g}"}))
    return demo.canvas(shapes), found


# ---------------------------------------------------------------- texts, badges, towers


def sign_scene(
    random: Random, words: Sequence[str] = SIGN_WORDS, counts: Sequence[int] = (1, 1, 2, 2, 3, 3, 4)
) -> Scene:
    """A sign of one to four words; the demo's own texts are left out."""
    while True:
        chosen = random.sample(words, random.choice(counts))
        text = " ".join(chosen)
        font = ImageFont.load_default(random.choice((19, 20, 20, 20, 21)))
        text = text.capitalize() if random.random() < 0.6 else text
        if text.lower() not in HELD_OUT_TEXTS and font.getlength(text) < 2 * demo.WIDTH - 18:
            break
    image = Image.new("L", (demo.WIDTH * 2, demo.HEIGHT // 2), 255)
    ImageDraw.Draw(image).text((random.randint(5, 12), random.randint(5, 11)), text, fill=0, font=font)
    found = [Asked("demo_read_sign", "What is written here?", {"text": text})]
    if len(chosen) == 1:
        found.append(Asked("demo_read_word", "Which word is it?", {"word": text}))
    return image.convert("RGB"), found


def short_sign_scene(random: Random) -> Scene:
    """A sign of few words out of a smaller choice."""
    return sign_scene(random, COMMON_WORDS, (1, 1, 1, 2, 2, 3))


def badge_scene(random: Random) -> Scene:
    """A disc with a cut-out, over white as the harness shows it."""
    image = Image.new("RGB", (64, 64), (255, 255, 255))
    pen, edge, x, y = ImageDraw.Draw(image), random.randint(2, 8), random.randint(29, 35), random.randint(29, 35)
    half = random.randint(7, 14)
    pen.ellipse((edge, edge, 64 - edge, 64 - edge), fill=COLOURS[random.choice(HUES)])
    shape = random.choice(("circle", "square"))
    (pen.ellipse if shape == "circle" else pen.rectangle)((x - half, y - half, x + half, y + half), fill=(255,) * 3)
    return image, [Asked("demo_name_badge", "Which shape is cut out?", {"shape": shape})]


def tower_scene(random: Random) -> Scene:
    """Two or three blocks and a goal; the colours of the demo's plans are left out."""
    one, two, three = random.sample(HUES, 3)
    size = random.uniform(0.15, 0.22)
    if (one, two) == ("red", "blue"):
        return tower_scene(random)
    if random.random() < 0.5:
        shapes = [Shape("square", hue, (at, 0.3, at + 2 * size, 0.7)) for hue, at in ((one, 0.05), (two, 0.55))]
        asked = Asked("demo_block_tower", f"Build a tower of {one} on {two}.", {"plan": f"(stack {one} {two})"})
        return demo.canvas(shapes), [asked]
    text = f"{one.capitalize()} lies on {two}. Build a tower of {two} on {three}."
    shapes = [
        Shape("square", two, (0.1, 0.5, 0.1 + size, 0.9)), Shape("square", one, (0.1, 0.1, 0.1 + size, 0.5)),
        Shape("square", three, (0.6, 0.5, 0.6 + size, 0.9)),
    ]  # fmt: skip
    plan = f"(unstack {one} {two})\n(stack {two} {three})"
    return demo.canvas(shapes), [Asked("demo_block_tower", text, {"plan": plan})]


# ---------------------------------------------------------------- several pictures


def plant_case(random: Random) -> Case:
    """Two or three pictures of a plant, to be put in order."""
    count = random.choice((2, 3))
    while True:
        heights = [random.randint(2, 19) / 20 for _ in range(count)]
        if min(abs(a - b) for n, a in enumerate(heights) for b in heights[:n]) > 0.14:
            break
    margin, young = random.uniform(0.02, 0.1), random.random() < 0.5
    images = tuple(demo.canvas([Shape("square", "green", (margin, 1 - h, 1 - margin, 1.0))]) for h in heights)
    order = sorted(range(count), key=lambda number: heights[number], reverse=not young)
    text = f"Give the numbers of the pictures, {'youngest' if young else 'oldest'} plant first."
    asked = Asked("demo_order_of_pictures", text, {"order": str([number + 1 for number in order])})
    return Case(images, (turn_of(asked, "\n".join(["<image>"] * count)),))


def clip_case(random: Random) -> Case:
    """A dot that crosses three to five frames, alone or after a picture of its start."""
    frames, hue, rightwards = random.randint(3, 5), random.choice(("red", "blue")), random.random() < 0.5
    images = []
    height = random.uniform(0.28, 0.42)
    for number in range(frames):
        share = number / (frames - 1)
        left = 0.8 * (share if rightwards else 1 - share)
        images.append(demo.canvas([Shape("circle", hue, (left, height, left + 0.2, height + 0.3))], (96, 64)))
    if random.random() < 0.3:
        same = random.random() < 0.5
        left = 0.8 * (rightwards != same)
        start = demo.canvas([Shape("circle", hue, (left, height, left + 0.2, height + 0.3))])
        description = TASK_BY_NAME["demo_picture_and_clip"].description
        tokens = f"<image> [video start]{'<image>' * frames}[video end]"
        question = "Question: Does the clip start as in the picture? Answer yes or no."
        turn = Turn(f"{description}\n\n{tokens} {question}", f"Answer: {'yes' if same else 'no'}")
        return Case((start, *images), (turn,))
    side = Asked("demo_dot_in_video", "Which way does it go, left or right?",
                 {"answer": "right" if rightwards else "left"})  # fmt: skip
    colour = Asked("demo_dot_in_video", "Is it red or blue?", {"answer": hue})
    turns = [turn_of(asked, "<video>") for asked in random.sample([side, colour], 2)]
    return Case(tuple(images), tuple(turns))


# ---------------------------------------------------------------- cases

Maker = Callable[[Random], Any]
_WHOLE_CASES: frozenset[Maker] = frozenset({plant_case, clip_case})
BROAD: dict[Maker, float] = {
    row_scene: 42, place_scene: 20, bar_scene: 10, sign_scene: 12, badge_scene: 2, swipe_scene: 2, tower_scene: 3,
    plant_case: 4, clip_case: 2,
}  # fmt: skip
"""How often each kind of drawing comes in the first stage of the training."""
NARROW: dict[Maker, float] = {
    row_scene: 38, place_scene: 16, bar_scene: 12, short_sign_scene: 15, badge_scene: 4, swipe_scene: 2, tower_scene: 3,
    plant_case: 4, clip_case: 2,
}  # fmt: skip
"""In the second: shorter signs, more badges."""
DEMONSTRATED = ("demo_count_circles", "demo_name_colour", "demo_read_sign", "demo_bar_share", "demo_left_to_right")


def draw_case(random: Random, accept: Callable[[Image.Image], bool], mixture: dict[Maker, float]) -> Case:
    """One case of at most ``MOST_TURNS`` turns whose pictures all pass ``accept``."""
    maker = random.choices(list(mixture), list(mixture.values()))[0]
    while True:
        case = maker(random) if maker in _WHOLE_CASES else _scene_case(random, maker, MOST_TURNS)
        if all(accept(image) for image in case.images):
            return case


def _scene_case(random: Random, maker: Callable[[Random], Scene], most_turns: int) -> Case:
    image, asked = maker(random)
    if random.random() < 0.4:
        shown, known = maker(random)
        turns = [
            turn_of(one, example=random.choice(fitting))
            for one in asked
            if one.task in DEMONSTRATED and (fitting := [other for other in known if other.task == one.task])
        ]
        if turns:
            return Case((shown, image), tuple(random.sample(turns, min(len(turns), most_turns))))
    return Case((image,), tuple(map(turn_of, random.sample(asked, min(len(asked), most_turns)))))
