"""What a document asks, and what a reply to it becomes: the record of ``prediction.json``."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmms_eval.errors import DataError, LmmsEvalError
from lmms_eval.tasks._task_utils.pictures import open_image
from lmms_eval.tasks.general_bench.data.documents import head_of, item_of, lacking
from lmms_eval.tasks.general_bench.facts import LANGUAGE, tasks_by_id
from lmms_eval.tasks.general_bench.items import Item
from lmms_eval.tasks.general_bench.nlp.types import type_of
from lmms_eval.tasks.general_bench.prompts import media, media_extraction, media_messages, nlp, nlp_extraction
from lmms_eval.tasks.general_bench.prompts.media import Question
from lmms_eval.tasks.general_bench.readers.masks import mask
from lmms_eval.tasks.general_bench.readers.sides import Side
from lmms_eval.tasks.general_bench.scoring import REPLY
from lmms_eval.tasks.general_bench.settings import Settings

Doc = Mapping[str, Any]
PREDICTION = "prediction"


def question(doc: Doc, settings: Settings) -> Question:
    """The question of a document.

    Raises:
        DataError: the item cannot be read. MediaError: a medium is missing. NotEvaluated: its keys are not known.
    """
    item = item_of(doc, settings)
    if item.facts.modality != LANGUAGE:
        if lack := lacking(item):
            raise DataError(f"item {item.id!r:.80}: {lack}")
        return media.question(item, doc["candidates"], settings.max_frames)
    kind = _kind(doc)
    return Question((nlp.nlp_prompt(_name(doc, item), kind, item.raw),), nlp.max_new_tokens(kind))


def answer_limit(doc: Doc, settings: Settings) -> int:
    """Most tokens of an answer to the documents of a task, told from one of them; items that cannot be read get 16."""
    if tasks_by_id()[doc["task"]].modality == LANGUAGE:
        return nlp.max_new_tokens(_kind(doc))
    return 16 if doc["problem"] else media.max_new_tokens(item_of(doc, settings), doc["candidates"])


def messages(doc: Doc, settings: Settings) -> list[dict[str, Any]]:
    """One user turn: media first, then the text."""
    return [{"role": "user", "content": media_messages.message_parts(question(doc, settings), settings.points)}]


def text(doc: Doc, settings: Settings) -> str:
    """The question's text."""
    return "\n".join(part for part in question(doc, settings).parts if isinstance(part, str))


def visuals(doc: Doc, settings: Settings) -> list[Any]:
    """Media of the question for the simple interface: pictures (RGB), paths of videos and sounds."""
    found: list[Any] = []
    for part in media_messages.message_parts(question(doc, settings), settings.points):
        if part["type"] == "image":
            given = part["url"]
            found.append(open_image(Path(given)) if isinstance(given, str) else given)
        elif part["type"] != "text":
            found.append(part["url"])
    return found


def record(doc: Doc, reply: Any, settings: Settings) -> dict[str, Any]:
    """What a reply is in ``prediction.json``: ``id`` and ``prediction`` (word problems: steps and final answer)."""
    item = item_of(doc, settings)
    if item.facts.modality != LANGUAGE:
        return {"id": item.id, PREDICTION: _own(item, reply, media_extraction.extract(item, reply))}
    kind = _kind(doc)
    extract = nlp_extraction.extract_fixed if settings.extraction == "fixed" else nlp_extraction.extract
    return {"id": item.id, **extract(_name(doc, item), kind, item.raw, str(reply))}


def _own(item: Item, reply: Any, extracted: Any) -> Any:
    """What a reply says, with its text in a mapping where that would be taken for a path: a model names no files,
    but for the pictures that it made itself."""
    if item.form in ("text", "number") or not isinstance(extracted, str):
        return extracted
    made = {str(image.path) for image in getattr(reply, "images", ())}
    return extracted if extracted in made else {REPLY: extracted}


def gold(doc: Doc, settings: Settings) -> str:
    """A reply from which the reference answer is read; empty where there is none, or no text says it."""
    item = item_of(doc, settings)
    reference = item.reference
    if isinstance(reference, list | tuple) and reference and all(isinstance(one, str) for one in reference):
        reference = reference[0]
    if reference is None:
        return ""
    if item.facts.modality != LANGUAGE:
        if item.form == "mask" and isinstance(reference, str):
            try:
                reference = _run_lengths(item)
            except LmmsEvalError:  # what is wrong with it, the scoring of an empty outline says
                return "[]"
        return reference if isinstance(reference, str) else json.dumps(reference)
    kind = type_of(_kind(doc))
    if kind.name == "MultipleChoiceQA":
        return f"answer: {reference}"
    if kind.is_number:
        return f"[{reference}]"
    if kind.name == "Code Defect Detection":
        return "no defect" if reference == "0" else "defect"
    return f"{kind.marker} {reference}".strip().replace("<p>", ", ")


def _run_lengths(item: Item) -> dict[str, Any]:
    """What stands in the picture of a reference mask, as text can say it."""
    found = mask(item.reference, Side(item, predicted=False))
    edges = [0, *(int(edge) for run in zip(found.starts, found.ends, strict=True) for edge in run)]
    edges.append(found.height * found.width)
    return {"size": list(found.size), "counts": [end - start for start, end in itertools.pairwise(edges)]}


def prediction(made: Mapping[str, Any]) -> Any:
    """The value of a record that is scored: ``prediction`` wins over ``prediction_final``."""
    return made.get(PREDICTION, made.get("prediction_final"))


def _kind(doc: Doc) -> str:
    return str(head_of(doc).get("type", ""))


def _name(doc: Doc, item: Item) -> str:
    return str(head_of(doc).get("task", "")) or item.facts.name
