"""From a model's reply to the record of ``prediction.json``, and from a record to the value that is scored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmms_eval.tasks.general_bench.data.documents import item_of, stated_name, stated_type
from lmms_eval.tasks.general_bench.facts import LANGUAGE
from lmms_eval.tasks.general_bench.prompts import media_extraction, nlp_extraction
from lmms_eval.tasks.general_bench.scoring import REPLY
from lmms_eval.tasks.general_bench.settings import Settings

PREDICTION = "prediction"


def record(doc: Mapping[str, Any], reply: Any, settings: Settings) -> dict[str, Any]:
    """Reads a reply as a record: ``id`` and ``prediction``, or for word problems steps and final answer.

    A text that would be taken for a path stands in a mapping (``REPLY``): a model names no files, but for the pictures
    that it made itself.
    """
    item = item_of(doc, settings)
    if item.facts.modality == LANGUAGE:
        extract = nlp_extraction.extract_fixed if settings.extraction == "fixed" else nlp_extraction.extract
        return {"id": item.id, **extract(stated_name(doc, item), stated_type(doc), item.raw, str(reply))}
    extracted = media_extraction.extract(item, reply)
    if item.form not in ("text", "number") and isinstance(extracted, str):
        made = {str(image.path) for image in getattr(reply, "images", ())}
        extracted = extracted if extracted in made else {REPLY: extracted}
    return {"id": item.id, PREDICTION: extracted}


def prediction(made: Mapping[str, Any]) -> Any:
    """Returns the value of a record that is scored: ``prediction`` wins over ``prediction_final``."""
    return made.get(PREDICTION, made.get("prediction_final"))
