"""Items of an annotation file for prompts and measures: JSON values, and the folder of their paths."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.facts import TaskFacts

Form = Literal[
    "text",
    "number",
    "boxes",
    "tube",
    "mask",
    "masks",
    "labels",
    "instances",
    "triplets",
    "flow",
    "depth",
    "saliency",
    "map",
    "alpha",
    "normals",
    "points",
    "poses",
    "tracks",
    "detections3d",
    "notes",
    "image",
    "video",
    "audio",
    "mesh",
    "motion",
]
"""The kind of an answer; the benchmark's README describes its form in ``prediction.json``."""
MediaKind = Literal["image", "video", "frames", "audio", "points"]


class UnreadableAnswer(DataError):
    """A prediction is not in the form of its task; the item counts as wrong, with this note."""


class MissingAnswer(UnreadableAnswer):
    """A prediction names a missing file."""


class Annotation(Struct, frozen=True):
    """An ``annotation.json``: its head (every key but ``data``) and its items, unchanged from the file."""

    folder: Path
    """The task's folder, to which the paths of its items are relative."""
    file: Path
    task: str
    type: str
    """As written: the class of a language task, or ``comprehension`` / ``generation``; empty if absent."""
    head: Mapping[str, Any]
    data: tuple[Any, ...]


class MediaInput(Struct, frozen=True):
    """A picture, video, sound or point cloud of a question."""

    kind: MediaKind
    paths: tuple[Path, ...]
    """One file; for ``frames`` the frames in order, or one folder of frames."""


class Item(Struct, frozen=True):
    """One question with its reference answer."""

    id: Any
    """As in the annotation (a JSON scalar); predictions are matched by it, type included."""
    facts: TaskFacts
    """The task's row of the workbook."""
    form: Form
    prompt: str
    """The item's own text: a question, an instruction, a caption to generate from; empty if it has none."""
    media: tuple[MediaInput, ...]
    reference: Any
    """JSON value in the item's form, paths relative to ``folder`` (``readers`` turn it into arrays); ``None`` if
    it is withheld (closed set)."""
    folder: Path
    prediction_folder: Path
    """The folder of the prediction file, to which paths of predictions are relative."""
    raw: Mapping[str, Any]
    """The item, unchanged from the annotation."""
    head: Mapping[str, Any] = field(default_factory=dict)
    """The other keys of the annotation."""

    @property
    def where(self) -> str:
        """The item's name in messages."""
        return f"{self.folder.name}, item {self.id!r}"
