"""From a document to the messages of its question, and to the length that an answer may have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmms_eval.errors import DataError
from lmms_eval.tasks._task_utils.documents import once_per_document
from lmms_eval.tasks._task_utils.pictures import open_image
from lmms_eval.tasks.general_bench.data.documents import item_of, lacking, stated_name, stated_type
from lmms_eval.tasks.general_bench.facts import LANGUAGE, tasks_by_id
from lmms_eval.tasks.general_bench.prompts import media, media_messages, nlp
from lmms_eval.tasks.general_bench.prompts.media import Question
from lmms_eval.tasks.general_bench.settings import Settings

Doc = Mapping[str, Any]


@once_per_document
def question(doc: Doc, settings: Settings) -> Question:
    """Puts the question of a document.

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
    """Returns the most tokens of an answer to a task's documents, by one of them; 16 where it cannot be read."""
    if tasks_by_id()[doc["task"]].modality == LANGUAGE:
        return nlp.max_new_tokens(stated_type(doc))
    return 16 if doc["problem"] else media.max_new_tokens(item_of(doc, settings), doc["candidates"])


def messages(doc: Doc, settings: Settings) -> list[dict[str, Any]]:
    """Returns one user turn: media first, then the text."""
    return [{"role": "user", "content": media_messages.message_parts(question(doc, settings), settings.points)}]


def text(doc: Doc, settings: Settings) -> str:
    """Returns the question's text."""
    return "\n".join(part for part in question(doc, settings).parts if isinstance(part, str))


def visuals(doc: Doc, settings: Settings) -> list[Any]:
    """Returns the media of the question for the simple interface: pictures (RGB), paths of videos and sounds."""
    found: list[Any] = []
    for part in media_messages.message_parts(question(doc, settings), settings.points):
        if part["type"] == "image":
            given = part["url"]
            found.append(open_image(Path(given)) if isinstance(given, str) else given)
        elif part["type"] != "text":
            found.append(part["url"])
    return found
