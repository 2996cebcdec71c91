"""An item of an annotation file as prompts and measures see it: JSON values, and the folder where their paths start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

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
"""The kind of an answer; the benchmark's README says how each is written in ``prediction.json``."""
MediaKind = Literal["image", "video", "frames", "audio", "points"]


class UnreadableAnswer(DataError):
    """A prediction that is not in the form its task needs: the item counts as answered wrongly, with this note."""


class MissingAnswer(UnreadableAnswer):
    """A prediction that names a file which is not there."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """An ``annotation.json``: its head (every key but ``data``) and its items, unchanged in the file."""

    folder: Path
    """The task's folder: where the paths of its items start."""
    file: Path
    task: str
    type: str
    """As written: the class of a language task, or ``comprehension`` / ``generation``; empty if absent."""
    head: Mapping[str, Any]
    data: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class MediaInput:
    """A picture, video, sound or point cloud of a question."""

    kind: MediaKind
    paths: tuple[Path, ...]
    """One file; for ``frames`` the frames in order, or one folder of frames."""


@dataclass(frozen=True, slots=True)
class Item:
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
    """The folder of the prediction file, from which relative paths of predictions start."""
    raw: Mapping[str, Any]
    """The item unchanged in the annotation."""
    head: Mapping[str, Any] = field(default_factory=dict)
    """The annotation's further keys."""

    @property
    def where(self) -> str:
        """Name the item in messages."""
        return f"{self.folder.name}, item {self.id!r}"
