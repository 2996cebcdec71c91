"""The mixture of drawings for the training and the check."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from cases import Case, Scene, chosen_turns, turn_of
from others import badge_scene, clip_case, plant_case, sign_scene, tower_scene
from PIL import Image
from scenes import bar_scene, place_scene, row_scene, swipe_scene

Accept = Callable[[Image.Image], bool]
Maker = Callable[[Random], Any]
MIXTURE: dict[Maker, float] = {
    row_scene: 32, place_scene: 22, bar_scene: 10, sign_scene: 18, badge_scene: 3, swipe_scene: 3, tower_scene: 4,
    plant_case: 4, clip_case: 3,
}  # fmt: skip
"""Weight of each kind of drawing with questions."""
TO_LOOK_AT: dict[Maker, float] = {row_scene: 25, place_scene: 20, bar_scene: 10, sign_scene: 45, swipe_scene: 4}
"""Weight of each kind while only the vision encoder learns."""
DEMONSTRATED = ("demo_count_circles", "demo_name_colour", "demo_read_sign", "demo_bar_share", "demo_left_to_right")
_WHOLE_CASES: frozenset[Maker] = frozenset({plant_case, clip_case})


def draw_scene(random: Random, accept: Accept) -> Scene:
    """Return a drawing without questions that passes ``accept``."""
    maker = random.choices(list(TO_LOOK_AT), list(TO_LOOK_AT.values()))[0]
    while True:
        scene: Scene = maker(random)
        if accept(scene.picture.image):
            return scene


def draw_case(random: Random, accept: Accept) -> Case:
    """Return a case whose pictures all pass ``accept``."""
    maker = random.choices(list(MIXTURE), list(MIXTURE.values()))[0]
    while True:
        case: Case = maker(random) if maker in _WHOLE_CASES else _scene_case(random, maker)
        if all(accept(picture.image) for picture in case.pictures):
            return case


def _scene_case(random: Random, maker: Callable[[Random], Scene]) -> Case:
    scene = maker(random)
    if random.random() < 0.4:
        shown = maker(random)
        turns = [
            turn_of(one, example=random.choice(fitting))
            for one in scene.asked
            if one.task in DEMONSTRATED and (fitting := [other for other in shown.asked if other.task == one.task])
        ]
        if turns:
            return Case((shown.picture, scene.picture), chosen_turns(random, turns))
    return Case((scene.picture,), chosen_turns(random, [turn_of(one) for one in scene.asked]))
