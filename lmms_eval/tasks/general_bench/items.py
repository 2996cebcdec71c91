"""Items of an annotation file for prompts and measures: JSON values, and the folder of their paths."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.facts import TaskFacts

Form = Literal[
    "text", "number", "boxes", "tube", "mask", "masks", "labels", "instances", "triplets", "flow", "depth", "saliency",
    "map", "alpha", "normals", "points", "poses", "tracks", "detections3d", "notes", "image", "video", "audio", "mesh",
    "motion",
]  # fmt: skip
"""Kind of an answer. The benchmark's README describes its form in ``prediction.json``."""
MediaKind = Literal["image", "video", "frames", "audio", "points"]


class UnreadableAnswer(DataError):
    """A prediction is not in the form of its task. The item counts as wrong, with this note."""


class MissingAnswer(UnreadableAnswer):
    """A prediction names a missing file."""


class Annotation(Struct, frozen=True):
    """An ``annotation.json``: its head (every key except ``data``) and its unchanged items."""

    folder: Path
    """The task's folder. The paths of its items are relative to it."""
    file: Path
    task: str
    type: str
    """The unchanged ``type``: the class of a language task, or ``comprehension`` / ``generation``, or empty."""
    head: Mapping[str, Any]
    data: tuple[Any, ...]


class MediaInput(Struct, frozen=True):
    """A picture, video, sound or point cloud of a question."""

    kind: MediaKind
    paths: tuple[Path, ...]
    """One file, or for ``frames`` the frames in order, or one folder of frames."""


class Item(Struct, frozen=True):
    """One question with its reference answer."""

    id: Any
    """The annotation's id (a JSON scalar). Predictions are matched by it, type included."""
    facts: TaskFacts
    """The task's row of the workbook."""
    form: Form
    prompt: str
    """The item's own text: a question, an instruction, a caption to generate from, or empty."""
    media: tuple[MediaInput, ...]
    reference: Any
    """JSON value in the item's form, with paths relative to ``folder`` (``readers`` turn it into arrays), or ``None``
    if it is withheld (closed set).
    """
    folder: Path
    prediction_folder: Path
    """The folder of the prediction file. Paths of predictions are relative to it."""
    raw: Mapping[str, Any]
    """The item, unchanged from the annotation."""
    head: Mapping[str, Any] = field(default_factory=dict)
    """The other keys of the annotation."""

    @property
    def where(self) -> str:
        """The item's name in messages."""
        return f"{self.folder.name}, item {self.id!r}"
