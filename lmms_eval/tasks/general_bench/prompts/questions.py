"""Messages of a document's question, and the longest answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from lmms_eval.errors import DataError, MediaError
from lmms_eval.media.video import Sampling, read_frames
from lmms_eval.tasks._task_utils.documents import once_per_document
from lmms_eval.tasks._task_utils.pictures import image_part, open_image
from lmms_eval.tasks.general_bench.data.documents import item_of, lacking, stated_name, stated_type
from lmms_eval.tasks.general_bench.facts import LANGUAGE, tasks_by_id
from lmms_eval.tasks.general_bench.items import MediaInput
from lmms_eval.tasks.general_bench.prompts import media, nlp
from lmms_eval.tasks.general_bench.prompts.media import Question, frame_files, in_frames, shown
from lmms_eval.tasks.general_bench.prompts.point_views import views
from lmms_eval.tasks.general_bench.readers.points import read_points
from lmms_eval.tasks.general_bench.settings import Settings

PointOption = Literal["render", "refuse"]
_VIEWS = "The point cloud, seen from four sides (brighter is nearer):"


def message_parts(question: Question, points: PointOption = "render") -> list[dict[str, Any]]:
    """Return the parts of the user's message, in the form of ``doc_to_messages``. Point clouds become pictures, or an
    error.

    Raises ``MediaError`` if a medium is missing or unreadable, or for a point cloud that is refused.
    """
    parts: list[dict[str, Any]] = []
    for part in question.parts:
        if isinstance(part, str):
            parts.append(_text(part))
        else:
            parts.extend(_medium(part, question, points))
    return parts


def _medium(medium: MediaInput, question: Question, points: PointOption) -> Iterator[dict[str, Any]]:
    kind = "frames" if in_frames(medium) else medium.kind
    match kind:
        case "image":
            yield from map(image_part, medium.paths)
        case "frames":
            files = frame_files(medium)
            numbers = shown(len(files), question.max_frames)
            yield from _frames([image_part(files[number]) for number in numbers], numbers, question)
        case "video" if question.numbers_frames:
            read = read_frames(str(medium.paths[0]), Sampling(count=question.max_frames))
            pictures = [{"type": "image", "url": image} for image in read.images()]
            yield from _frames(pictures, read.indices, question)
        case "video" | "audio":
            for path in medium.paths:
                if not path.is_file():
                    raise MediaError(f"the {kind} {path} is not there")
                yield {"type": kind, "url": str(path)}
        case _:
            if points == "refuse":
                raise MediaError(
                    f"the point cloud {medium.paths[0]} cannot be given to a chat model; with points=render it is "
                    "shown as pictures"
                )
            for path in medium.paths:
                try:
                    cloud = read_points(path)
                except DataError as error:
                    raise MediaError(str(error)) from error
                yield _text(_VIEWS)
                yield from ({"type": "image", "url": view} for view in views(cloud))


def _frames(pictures: Sequence[dict[str, Any]], numbers: Sequence[int], question: Question) -> Iterator[dict[str, Any]]:
    for number, picture in zip(numbers, pictures, strict=True):
        if question.numbers_frames:
            yield _text(f"Frame {number}:")
        yield picture


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


Doc = Mapping[str, Any]


@once_per_document
def question(doc: Doc, settings: Settings) -> Question:
    """Return the question of a document.

    Raises:
        DataError: the item cannot be read. MediaError: a medium is missing. NotEvaluated: its keys are not known.
    """
    item = item_of(doc, settings)
    if item.facts.modality != LANGUAGE:
        if lack := lacking(item):
            raise DataError(f"item {item.id!r:.80}: {lack}")
        return media.question(item, doc["candidates"], settings.max_frames)
    kind = stated_type(doc)
    return Question((nlp.nlp_prompt(stated_name(doc, item), kind, item.raw),), nlp.max_new_tokens(kind))


def answer_limit(doc: Doc, settings: Settings) -> int:
    """Return the most tokens of an answer, judged by one of a task's documents. It is 16 if that cannot be read."""
    if tasks_by_id()[doc["task"]].modality == LANGUAGE:
        return nlp.max_new_tokens(stated_type(doc))
    return 16 if doc["problem"] else media.max_new_tokens(item_of(doc, settings), doc["candidates"])


def messages(doc: Doc, settings: Settings) -> list[dict[str, Any]]:
    """Return one user turn with the media first, then the text."""
    return [{"role": "user", "content": message_parts(question(doc, settings), settings.points)}]


def text(doc: Doc, settings: Settings) -> str:
    """Return the question's text."""
    return "\n".join(part for part in question(doc, settings).parts if isinstance(part, str))


def visuals(doc: Doc, settings: Settings) -> list[Any]:
    """Return the media of the question for the simple interface: pictures (RGB), and paths of videos and sounds."""
    found: list[Any] = []
    for part in message_parts(question(doc, settings), settings.points):
        if part["type"] == "image":
            given = part["url"]
            found.append(open_image(Path(given)) if isinstance(given, str) else given)
        elif part["type"] != "text":
            found.append(part["url"])
    return found
