"""The types of language tasks, and the parts of their items.

A type sets length and marker of answers, place of the reference, and metric. A task's type is the unchanged ``type`` of
its annotation (General-Bench specification §2.3, §4.1). ``NlpFields`` reads the parts of an item with errors that name
the key.
"""

from __future__ import annotations

import json
import math
import string
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from msgspec import Struct

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.data.records import ItemSource, Record, id_key
from lmms_eval.tasks.general_bench.facts import TaskFacts
from lmms_eval.tasks.general_bench.items import Annotation, Item
from lmms_eval.tasks.general_bench.measures.text_math import SEPARATOR

LETTERS = string.ascii_uppercase
"""Letters of the options of a question, in order."""


class NlpFields(Struct, frozen=True):
    """An item's entry of the annotation. Keys are given outermost first."""

    task: str
    raw: Mapping[str, Any]

    def get(self, *path: str) -> Any:
        """Return the value, or ``None`` if it or an object above it is missing."""
        value: Any = self.raw
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    def value(self, *path: str) -> Any:
        """Return the value. Raises ``DataError`` if it is missing or null."""
        value = self.get(*path)
        if value is None:
            raise self.error(f"no {'.'.join(path)}")
        return value

    def text(self, *path: str) -> str:
        """Return the value as text. Raises ``DataError`` if it is missing or null."""
        return as_text(self.value(*path))

    def entries(self, *path: str) -> list[Any]:
        """Return the value as a list. Raises ``DataError`` if it is missing or not a list."""
        value = self.value(*path)
        if not isinstance(value, list):
            raise self.error(f"{'.'.join(path)} is {value!r:.80}, no list")
        return value

    def options(self) -> list[str]:
        """Return the options of a multiple-choice question: at least one, and at most as many as there are letters."""
        options = [as_text(option) for option in self.entries("input", "options")]
        if not 0 < len(options) <= len(LETTERS):
            raise self.error(f"input.options has {len(options)} entries; 1 to {len(LETTERS)} are expected")
        return options

    def error(self, problem: str) -> DataError:
        return DataError(f"{self.task!r}, item {self.raw.get('id')!r}: {problem}")


def as_text(value: Any) -> str:
    """Return a text unchanged, and anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


Reading = Literal["path", "summary", "translation", "target", "proof", "label", "labels", "any"]
"""How the reference is read from an item's ``output``: the text at ``path``; ``summary``, else ``highlights``; the
output itself, or its ``translation``; ``target`` as text; steps and conclusion in one text; the first value in lower
case; the first value in lower case with ``<p>`` between its labels; the first value unchanged.
"""
Metric = Literal["ACC", "F1", "ROUGE-1", "BLEU-1", "CodeBLEU", "Micro-F1", "MAE"]
"""Names of metrics in the workbook's spelling."""
SHORT, MEDIUM, LONG, VERY_LONG = 64, 128, 256, 512


class NlpType(Struct, frozen=True):
    """Properties of all tasks of a type."""

    name: str
    metric: Metric
    """Metric of the reference's scorer. The workbook's row may name another one."""
    path: tuple[str, ...] = ()
    """Keys below ``output``, outermost first, if ``reading`` is ``path``."""
    reading: Reading = "path"
    max_new_tokens: int = LONG
    marker: str = ""
    """The words before the answer, or empty if the whole reply is the answer."""
    first_marker: bool = False
    """Whether the answer begins after the first marker of the reply, not after its last."""
    keeps_space: bool = False
    """Whether a reply without a marker is not stripped."""

    @property
    def is_number(self) -> bool:
        """Whether answers are numbers, not texts."""
        return self.metric == "MAE"


OPEN_QA = NlpType("OpenQA", "F1", ("answer",))
UNKNOWN = NlpType("", "F1", reading="any")
"""Type of tasks with another type or without one. They are asked as ``OpenQA``."""
_LABEL_TYPES = ("classification", "multiple choice")
_LABELS_TYPES = ("multi label classification", "ner", "extraction", "relation extraction", "event detection", "parsing")
_TYPES = (
    NlpType("MultipleChoiceQA", "ACC", ("answer",)),
    OPEN_QA,
    NlpType("Summarization", "ROUGE-1", reading="summary", marker="Summary:"),
    NlpType("Translation", "ROUGE-1", reading="translation", marker="Translation:"),
    NlpType("Story Generation", "BLEU-1", ("story",), max_new_tokens=VERY_LONG, marker="Story:", keeps_space=True),
    NlpType("Dialogue", "BLEU-1", ("reference",), max_new_tokens=MEDIUM),
    NlpType("Code Generation", "CodeBLEU", ("response", "content"), marker="Code:", first_marker=True),
    NlpType("Code Repair", "CodeBLEU", ("repairCode",), marker="Refined Code:", first_marker=True),
    NlpType("Code Defect Detection", "ACC", reading="target", max_new_tokens=16),
    NlpType("Text to SQL", "ACC", ("sql",), marker="SQL:", first_marker=True),
    NlpType("Code Explanation", "BLEU-1", ("nl",)),
    NlpType("Proof", "BLEU-1", reading="proof", max_new_tokens=VERY_LONG),
    NlpType(
        "Mathematical Word Problem Solving",
        "ACC",
        ("solution", "final_answer"),
        max_new_tokens=VERY_LONG,
        marker="Final Answer:",
        first_marker=True,
    ),
    NlpType("Paraphrase Generation", "BLEU-1", ("paraphraseSentence",), max_new_tokens=MEDIUM, marker="Paraphrase:"),
    NlpType("Grammar Correction", "BLEU-1", ("Standard English",), max_new_tokens=MEDIUM, marker="Rewritten Sentence:"),
    NlpType("Text Style Transfer", "BLEU-1", ("answer",), marker="Answer:"),
    NlpType("Table-to-Text Generation", "BLEU-1", ("response", "text"), max_new_tokens=VERY_LONG),
    NlpType("Time Series", "MAE", ("target",), max_new_tokens=SHORT),
    *(NlpType(name, "Micro-F1", reading="label", max_new_tokens=SHORT) for name in _LABEL_TYPES),
    *(
        NlpType(name, "Micro-F1", reading="labels", max_new_tokens=MEDIUM if name == "ner" else SHORT)
        for name in _LABELS_TYPES
    ),
)
TYPES: Mapping[str, NlpType] = MappingProxyType({kind.name: kind for kind in _TYPES})
"""All 26 types by name."""


def type_of(annotation_type: object) -> NlpType:
    """Return the type for an annotation's ``type``, or ``UNKNOWN``."""
    return TYPES.get(annotation_type, UNKNOWN) if isinstance(annotation_type, str) else UNKNOWN


_LABEL_COMMA = ", "
"""Separator of the labels of a reference and of a reply."""


def read_nlp_item(facts: TaskFacts, annotation: Annotation, raw: Any, prediction_folder: Path) -> Item:
    """Read an entry of the annotation's ``data``.

    The reference is a text or a list of texts, for time series a number or numeric text, or ``None``. Labels are in
    lower case with ``<p>`` between them. The prompt is made from ``raw`` (``prompts.nlp``). Raises ``DataError`` if the
    entry is no object, has no ``id``, or its reference is not of its type's shape.
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
    source = ItemSource(facts, annotation, Record(raw, where), raw["id"], prediction_folder)
    return source.item("number" if kind.is_number else "text", "", (), reference)


def reference_of(annotation_type: object, raw: Mapping[str, Any]) -> Any:
    """Return the reference answer as the reference's scorer reads it, or ``None`` if that leaves the item out.

    It leaves an item out if the reference is missing or an empty text. Labels may be empty, and an empty list stays a
    list except for a summary. Texts and lists are not checked. Raises ``DataError`` if ``output``, or what is below it,
    is not of the type's shape.
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
