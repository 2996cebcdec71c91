"""Makes the judge's questions about a query and its reply: one for each field with a judge metric."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lmms_eval.api.judging import JudgeQuestion
from lmms_eval.errors import TaskError
from lmms_eval.judges.prompts import bounded_picture, fill_template, user_turn
from lmms_eval.tasks.megabench.conversions.literals import unwrap_string
from lmms_eval.tasks.megabench.data import is_video
from lmms_eval.tasks.megabench.metrics.judged import asks_about_art, read_rating
from lmms_eval.tasks.megabench.scoring.query import parse_reply, response_of
from lmms_eval.tasks.megabench.scoring.task_spec import TaskSpec

if TYPE_CHECKING:
    from lmms_eval.api.messages import ChatMessages


COLUMN, LINE, PADDING = 6, 10, 5
"""Width of a column, height of a line, and padding, in pixels at half the size."""
SIDE = 224
QUALITY = 95
MAX_CELLS = 2000
"""Most columns and lines that are drawn; further ones would be less than a tenth of a pixel."""


def draw(text: str) -> bytes:
    """Draw a text and return the bytes of a JPEG; characters outside Latin-1, which the font lacks, become ``?``."""
    from PIL import Image, ImageDraw, ImageFont

    from lmms_eval.media import encode_image

    lines = [line[:MAX_CELLS].encode("latin-1", "replace").decode("latin-1") for line in text.splitlines()[:MAX_CELLS]]
    width = max(map(len, lines), default=0)
    size = (width * COLUMN + 2 * PADDING, len(lines) * LINE + 2 * PADDING)
    image = Image.new("L", size, 255)
    drawing, font = ImageDraw.Draw(image), ImageFont.load_default_imagefont()
    for number, line in enumerate(lines):
        shown = "".join(character if character.isprintable() else " " for character in line)
        if shown.strip():
            drawing.text((PADDING, PADDING + number * LINE), shown, fill=0, font=font)
    doubled = image.resize((2 * size[0], 2 * size[1]), Image.Resampling.NEAREST)
    final = doubled.convert("RGB").resize((SIDE, SIDE), Image.Resampling.LANCZOS)
    return encode_image(final, "JPEG", QUALITY)


VIDEO_FRAMES = 8
"""Evenly spaced frames of a video that accompany a question."""
GENERATION: Mapping[str, Any] = {"temperature": 0, "max_new_tokens": 1024}
ART_QUESTION = (
    "Here are two pictures of ASCII art. Do both of them show the same object? Reply with one word only: yes if they "
    "do, no if they do not."
)


class JudgedQuery(Struct, frozen=True):
    """A query as the judge's questions need it, without the reply."""

    answer: Mapping[str, Any]
    """Field -> true answer."""
    text: str
    """The query's text."""
    images: Sequence[str]
    """Media of the query as the data set writes them."""
    context: Mapping[str, Any]
    """Evaluation context; see ``read_context``."""
    find: Callable[[str], Path]
    """Finds the file of a medium; called only when the prompt is rendered."""


def questions(reply: str | None, query: JudgedQuery, spec: TaskSpec) -> list[JudgeQuestion]:
    """Return one question for each judged field, named like the field; empty if the score does not need a judge.

    A prompt that cannot be filled on this sample gives no question: ``score_query`` then scores the field 0.
    """
    judged = {field: metric for field, metric in spec.metrics.items() if metric.judged and field in query.answer}
    if not judged:
        return []
    parsed = parse_reply(reply, query.answer, spec)
    found = []
    for field, metric in judged.items():
        response = response_of(metric, parsed, field)
        if metric.name == "ascii_art_gpt4o_judge":
            question = _art_question(field, response, unwrap_string(query.answer[field]))
        else:
            question = _rating_question(field, response, query, spec)
        if question is not None:
            found.append(question)
    return found


def _rating_question(field: str, response: Any, query: JudgedQuery, spec: TaskSpec) -> JudgeQuestion | None:
    prompt = spec.judge
    assert prompt is not None, "parse_task_spec refuses a judge metric without its configuration"
    values = prompt.values(response, query.text, query.answer, query.context)
    try:
        text = fill_template(prompt.template, values, f"task {spec.task_name}")
    except TaskError:
        return None
    images = tuple(query.images) if prompt.with_image else ()
    has_video = any(is_video(name) for name in images)
    return JudgeQuestion(
        name=field,
        build_messages=functools.partial(_rating_messages, text, images, query.find),
        accepts=lambda said: read_rating(said) is not None,
        generation=GENERATION,
        details={"frames_per_video": VIDEO_FRAMES} if has_video else {},
    )


def _rating_messages(text: str, images: Sequence[str], find: Callable[[str], Path]) -> ChatMessages:
    from lmms_eval.media import Sampling, read_frames

    pictures: list[Any] = []
    for name in images:
        if is_video(name):
            frames = read_frames(find(name), Sampling(count=VIDEO_FRAMES)).images()
            pictures += [bounded_picture(frame) for frame in frames]
        else:
            pictures.append(bounded_picture(str(find(name))))
    return user_turn(text, pictures)


def _art_question(field: str, response: Any, truth: Any) -> JudgeQuestion | None:
    if not asks_about_art(response, truth):
        return None
    return JudgeQuestion(
        name=field,
        build_messages=lambda: user_turn(ART_QUESTION, [draw(response), draw(truth)]),
        accepts=lambda said: "yes" in said.lower() or "no" in said.lower(),
        generation=GENERATION,
    )
