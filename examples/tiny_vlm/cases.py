"""Types of the training data: drawings with questions, answers and labels of their patches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import make_megabench_demo as demo
import numpy as np
from make_megabench_demo import Query
from megabench_demo_tasks import TASKS
from PIL import Image

TASK_BY_NAME = {task.name: task for task in TASKS}
MOST_TURNS = 6


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a task: its wording and its answer."""

    task: str
    text: str
    answer: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A drawing and the contents of its patches (see :mod:`labels`)."""

    image: Image.Image
    labels: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """A picture and all questions that fit it."""

    picture: Picture
    asked: list[Asked]


@dataclass(frozen=True, slots=True)
class Turn:
    """One question as the harness words it, and the reply to learn. Turns of a case do not see each other."""

    prompt: str
    reply: str


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """Pictures and one or more turns about them; a demonstration's picture comes first."""

    pictures: tuple[Picture, ...]
    turns: tuple[Turn, ...]


def turn_of(asked: Asked, pictures: str = "<image>", example: Asked | None = None) -> Turn:
    """Join description, demonstration and question as ``lmms_eval.tasks.megabench.prompts.plain_text`` does."""
    shown = Query(example.text, example.answer, {"example.png": _nothing}) if example else None
    task = replace(TASK_BY_NAME[asked.task], example=shown)
    query = f"{pictures}\nQuestion: {asked.text}"
    return Turn("\n".join((task.description, demo.example_text(task), query)), demo.reply_of(task, asked.answer))


def chosen_turns(random: Random, turns: Sequence[Turn]) -> tuple[Turn, ...]:
    return tuple(random.sample(turns, min(len(turns), MOST_TURNS)))


def _nothing(_: Any) -> None:
    """Take the place of a drawing if only the number of pictures matters."""
