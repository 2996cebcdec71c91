"""Drawings of the other kinds: signs, badges, towers, and cases of several pictures."""

from __future__ import annotations

from random import Random

import labels
import make_megabench_demo as demo
from cases import TASK_BY_NAME, Asked, Case, Picture, Scene, Turn, turn_of
from labels import HUES, SIGN_WORDS
from make_megabench_demo import COLOURS, Shape
from PIL import Image, ImageDraw, ImageFont
from scenes import picture_of

HELD_OUT_TEXTS = frozenset(
    next(iter(query.answer.values())).lower()
    for name in ("demo_read_sign", "demo_read_word")
    for query in (*TASK_BY_NAME[name].queries, TASK_BY_NAME[name].example)
    if query
)
"""Texts that are never drawn in full."""
SIGN, SIGN_GRID = (2 * demo.WIDTH, demo.HEIGHT // 2), (2, 15)


def sign_scene(random: Random) -> Scene:
    """Draw a sign of one to four words; the demo's own texts are left out."""
    while True:
        chosen = random.sample(SIGN_WORDS, random.choice((1, 1, 1, 2, 2, 3, 3, 4)))
        text = " ".join(chosen)
        font = ImageFont.load_default(random.choice((19, 20, 20, 20, 21)))
        text = text.capitalize() if random.random() < 0.5 else text
        if text.lower() not in HELD_OUT_TEXTS and font.getlength(text) < SIGN[0] - 18:
            break
    image, left = Image.new("L", SIGN, 255), random.randint(5, 12)
    ImageDraw.Draw(image).text((left, random.randint(5, 11)), text, fill=0, font=font)
    found = [Asked("demo_read_sign", "What is written here?", {"text": text})]
    if len(chosen) == 1:
        found.append(Asked("demo_read_word", "Which word is it?", {"word": text}))
    return Scene(Picture(image.convert("RGB"), labels.of_text(text, left, font, SIGN[0], SIGN_GRID)), found)


def badge_scene(random: Random) -> Scene:
    """Draw a disc with a cut-out, over white as the harness shows it."""
    image = Image.new("RGB", (64, 64), (255, 255, 255))
    pen, edge, x, y = ImageDraw.Draw(image), random.randint(2, 8), random.randint(29, 35), random.randint(29, 35)
    half = random.randint(7, 14)
    pen.ellipse((edge, edge, 64 - edge, 64 - edge), fill=COLOURS[random.choice(HUES)])
    shape = random.choice(("circle", "square"))
    (pen.ellipse if shape == "circle" else pen.rectangle)((x - half, y - half, x + half, y + half), fill=(255,) * 3)
    asked = Asked("demo_name_badge", "Which shape is cut out?", {"shape": shape})
    return Scene(Picture(image, labels.none(16)), [asked])


def tower_scene(random: Random) -> Scene:
    """Draw two or three blocks and a goal; the colours of the demo's plans are left out."""
    one, two, three = random.sample(HUES, 3)
    size = random.uniform(0.15, 0.22)
    if (one, two) == ("red", "blue"):
        return tower_scene(random)
    if random.random() < 0.5:
        shapes = [Shape("square", hue, (at, 0.3, at + 2 * size, 0.7)) for hue, at in ((one, 0.05), (two, 0.55))]
        asked = Asked("demo_block_tower", f"Build a tower of {one} on {two}.", {"plan": f"(stack {one} {two})"})
        return Scene(picture_of(shapes), [asked])
    text = f"{one.capitalize()} lies on {two}. Build a tower of {two} on {three}."
    shapes = [
        Shape("square", two, (0.1, 0.5, 0.1 + size, 0.9)), Shape("square", one, (0.1, 0.1, 0.1 + size, 0.5)),
        Shape("square", three, (0.6, 0.5, 0.6 + size, 0.9)),
    ]  # fmt: skip
    plan = f"(unstack {one} {two})\n(stack {two} {three})"
    return Scene(picture_of(shapes), [Asked("demo_block_tower", text, {"plan": plan})])


def plant_case(random: Random) -> Case:
    """Draw two or three pictures of a plant, to be put in order."""
    count = random.choice((2, 3))
    while True:
        heights = [random.randint(2, 19) / 20 for _ in range(count)]
        if min(abs(a - b) for n, a in enumerate(heights) for b in heights[:n]) > 0.14:
            break
    margin, young = random.uniform(0.02, 0.1), random.random() < 0.5
    pictures = tuple(picture_of([Shape("square", "green", (margin, 1 - h, 1 - margin, 1.0))]) for h in heights)
    order = sorted(range(count), key=lambda number: heights[number], reverse=not young)
    text = f"Give the numbers of the pictures, {'youngest' if young else 'oldest'} plant first."
    asked = Asked("demo_order_of_pictures", text, {"order": str([number + 1 for number in order])})
    return Case(pictures, (turn_of(asked, "\n".join(["<image>"] * count)),))


def clip_case(random: Random) -> Case:
    """Draw a dot that crosses three to eight frames, alone or after a picture of its start."""
    count, hue, rightwards = random.choice((3, 4, 5, 6, 8)), random.choice(("red", "blue")), random.random() < 0.5
    frames = []
    height = random.uniform(0.28, 0.42)
    for number in range(count):
        share = number / (count - 1)
        left = 0.8 * (share if rightwards else 1 - share)
        frames.append(picture_of([Shape("circle", hue, (left, height, left + 0.2, height + 0.3))], (96, 64)))
    if random.random() < 0.3:
        same = random.random() < 0.5
        left = 0.8 * (rightwards != same)
        start = picture_of([Shape("circle", hue, (left, height, left + 0.2, height + 0.3))])
        description = TASK_BY_NAME["demo_picture_and_clip"].description
        tokens = f"<image> [video start]{'<image>' * count}[video end]"
        question = "Question: Does the clip start as in the picture? Answer yes or no."
        turn = Turn(f"{description}\n\n{tokens} {question}", f"Answer: {'yes' if same else 'no'}")
        return Case((start, *frames), (turn,))
    side = Asked("demo_dot_in_video", "Which way does it go, left or right?",
                 {"answer": "right" if rightwards else "left"})  # fmt: skip
    colour = Asked("demo_dot_in_video", "Is it red or blue?", {"answer": hue})
    turns = [turn_of(asked, "<video>") for asked in random.sample([side, colour], 2)]
    return Case(tuple(frames), tuple(turns))
