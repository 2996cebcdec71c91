"""The input and the result of the readers of item schemas."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from lmms_eval.tasks.general_bench.data.records import Record
from lmms_eval.tasks.general_bench.facts import TaskFacts
from lmms_eval.tasks.general_bench.items import Annotation, Form, MediaInput

_ABSENT: tuple[object, ...] = (None, "", {}, [])


class Source(Struct, frozen=True):
    """An item to be read."""

    facts: TaskFacts
    annotation: Annotation
    top: Record
    """The item, unchanged from the annotation."""

    @property
    def has_output(self) -> bool:
        """Whether the item has an output; in closed sets the key is absent, null or empty."""
        return self.top.values.get("output") not in _ABSENT

    @property
    def output(self) -> Record:
        """Raise ``DataError`` if the output is no object."""
        return self.top.record("output")


class ItemDraft(Struct, frozen=True):
    """The parts of an item that depend on its schema."""

    form: Form
    prompt: str
    media: tuple[MediaInput, ...]
    reference: Any
