"""The types of language tasks, and the parts of their items.

A type sets length and marker of answers, place of the reference, and metric. A task's type is the unchanged ``type`` of
its annotation (General-Bench specification §2.3, §4.1). ``Fields`` reads the parts of an item with errors that name the
key.
"""

from __future__ import annotations

import json
import string
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from msgspec import Struct

from lmms_eval.errors import DataError

LETTERS = string.ascii_uppercase
"""Letters of the options of a question, in order."""


class Fields(Struct, frozen=True):
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
