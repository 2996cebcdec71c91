"""Items of language tasks and the place of their reference answers (General-Bench specification §2.3).

``reference_of`` follows the reference's scorer. ``read_nlp_item`` reads the same places, but takes numbers and lists of
labels for what they mean, where that scorer would stop or see an empty text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.data.records import id_key
from lmms_eval.tasks.general_bench.facts import TaskFacts
from lmms_eval.tasks.general_bench.items import Annotation, Item
from lmms_eval.tasks.general_bench.measures.text_math import SEPARATOR
from lmms_eval.tasks.general_bench.nlp.types import NlpType, type_of

_LABEL_COMMA = ", "
"""Separator of the labels of a reference and of a reply."""


def read_nlp_item(facts: TaskFacts, annotation: Annotation, raw: Any, prediction_folder: Path) -> Item:
    """Read an entry of the annotation's ``data``.

    The reference is a text or a list of texts, for time series a number or numeric text, or ``None``. Labels are in
    lower case with ``<p>`` between them. The prompt is made from ``raw`` (``prompts.nlp``).

    Raises:
        DataError: the entry is no object, has no ``id``, or its reference is not of its type's shape.
    """
    where = annotation.folder.name
    if not isinstance(raw, Mapping):
        raise DataError(f"{where}: an item is {raw!r:.80}, no object")
    try:
        id_key(raw.get("id"))
    except DataError as error:
        raise DataError(f"{where}: an item has no usable id: {error}") from error
    kind = type_of(annotation.type)
    try:
        reference = _number(_found(kind, raw)) if kind.is_number else _texts(_found(kind, raw))
    except DataError as error:
        raise DataError(f"{where}, item {raw['id']!r}: {error}") from error
    return Item(
        id=raw["id"],
        facts=facts,
        form="number" if kind.is_number else "text",
        prompt="",
        media=(),
        reference=reference,
        folder=annotation.folder,
        prediction_folder=prediction_folder,
        raw=raw,
        head=annotation.head,
    )


def reference_of(annotation_type: object, raw: Mapping[str, Any]) -> Any:
    """Return the reference answer as the reference's scorer reads it, or ``None`` if that leaves the item out.

    It leaves an item out if the reference is missing or an empty text. Labels may be empty, and an empty list stays a
    list except for a summary. Texts and lists are not checked.

    Raises:
        DataError: ``output``, or what is below it, is not of the type's shape.
    """
    kind = type_of(annotation_type)
    output = raw.get("output")
    match kind.reading:
        case "target":
            return str(_object(output, "output").get("target"))
        case "label":
            label = _first_value(output)
            if label is not None and not isinstance(label, str):
                raise DataError(f"the label is {label!r:.80}, no text")
            return None if label is None else label.lower()
        case "labels":
            labels = _first_value(output)
            if labels is not None and not isinstance(labels, str):
                return ""  # only a text has labels
            return None if labels is None else labels.lower().replace(_LABEL_COMMA, SEPARATOR)
        case _:
            return _read(kind, output)


def _read(kind: NlpType, output: Any) -> Any:
    match kind.reading:
        case "summary":
            content = _object(output, "output")
            found = content.get("summary") or content.get("highlights") or None
        case "translation":
            found = output if isinstance(output, str) else _object(output, "output").get("translation")
        case "proof":
            found = _proof(_object(output, "output").get("proof"))
        case "any":
            found = output if isinstance(output, str | list) else _first_value(output)
        case _:
            found, name = output, "output"
            for key in kind.path:
                found, name = _object(found, name).get(key), f"{name}.{key}"
    return None if found == "" else found


def _object(value: Any, name: str) -> Mapping[str, Any]:
    """Return an object. ``None`` represents an empty one."""
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return value
    raise DataError(f"{name} is {value!r:.80}, no object")


def _first_value(output: Any) -> Any:
    return next(iter(_object(output, "output").values()), None)


def _proof(proof: Any) -> str | None:
    if proof is None:
        return None
    content = _object(proof, "output.proof")
    steps, conclusion = content.get("steps") or [], content.get("conclusion")
    if isinstance(steps, str):
        steps = [steps]
    if not isinstance(steps, list) or not all(isinstance(step, str) for step in steps):
        raise DataError(f"output.proof.steps is {steps!r:.80}, no list of texts")
    if not steps and conclusion in (None, ""):
        return None
    return "\n".join([*steps, f"Conclusion: {'' if conclusion is None else conclusion}"])


def _found(kind: NlpType, raw: Mapping[str, Any]) -> Any:
    """Return the reference as it is meant."""
    output = raw.get("output")
    match kind.reading:
        case "target":
            target = _object(output, "output").get("target")
            return int(target) if isinstance(target, bool) else target
        case "label" | "labels":
            value = _first_value(output)
            if value is None:
                return None
            if isinstance(value, list):
                return SEPARATOR.join(_text(label).lower() for label in value)
            text = _text(value).lower()
            return text.replace(_LABEL_COMMA, SEPARATOR) if kind.reading == "labels" else text
        case _:
            return _read(kind, output)


def _texts(value: Any) -> str | list[str] | None:
    if value is None:
        return None
    return [_text(one) for one in value] if isinstance(value, list) else _text(value)


def _text(value: Any) -> str:
    if isinstance(value, str | int | float):
        return str(value)
    raise DataError(f"the reference is {value!r:.80}; text or a list of texts is expected")


def _number(value: Any) -> Any:
    try:
        if value is None or (not isinstance(value, bool) and math.isfinite(float(value))):
            return value
    except (TypeError, ValueError, OverflowError):
        pass
    raise DataError(f"the reference is {value!r:.80}; a number is expected")
