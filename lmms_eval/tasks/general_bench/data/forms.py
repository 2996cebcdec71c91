"""The form of a task's answers, by its row of the workbook and by the key and kind of an item's reference answer."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, get_args

from msgspec import Struct, field
from msgspec.structs import replace

from lmms_eval.errors import DataError, TaskError, UnknownNameError
from lmms_eval.tasks.general_bench.data.records import is_number
from lmms_eval.tasks.general_bench.facts import TaskFacts, find_task, sheets
from lmms_eval.tasks.general_bench.facts.metrics import metrics
from lmms_eval.tasks.general_bench.items import Form, MediaKind
from lmms_eval.tasks.general_bench.readers.pictures import PICTURE_SUFFIXES
from lmms_eval.tasks.yaml.loader import parse_text
from lmms_eval.utils.files import read_text

FORMS: tuple[Form, ...] = get_args(Form)
_TEXT_METRICS = frozenset({
    "accuracy", "bleu1", "bleu4", "f1", "micro_f1", "codebleu", "rouge1", "rouge_l", "anls", "exact_match", "cider",
    "macro_accuracy", "gpt_score",
})  # fmt: skip


class _Rule(Struct, frozen=True):
    """Form of the answers of rows, selected by patterns of sheet and id, and by the metric's key or ``*``."""

    form: Form
    sheet: str
    metric: str = "*"
    ids: str = "*"

    def fits(self, facts: TaskFacts) -> bool:
        return (
            fnmatchcase(facts.sheet, self.sheet)
            and self.metric in ("*", facts.metric)
            and fnmatchcase(facts.id, self.ids)
        )


_RULES = (
    _Rule("number", "NLP", "rmse"),
    _Rule("map", "Image-Generation", "auc"),
    _Rule("image", "Image-Generation"),
    _Rule("video", "Video-Generation"),
    _Rule("notes", "Audio-Generation", "pitch_class_consistency"),
    _Rule("notes", "Audio-Generation", "e_accuracy"),
    _Rule("audio", "Audio-Generation"),
    _Rule("points", "3D-Generation", "chamfer_distance"),
    _Rule("motion", "3D-Generation", "fid"),
    _Rule("mesh", "3D-Generation", ids="*_mesh_generation"),
    _Rule("points", "3D-Generation"),
    _Rule("number", "Image-Comprehension", "mae"),
    _Rule("instances", "Image-Comprehension", "detection_ap@50", "*_instance_segmentation"),
    _Rule("instances", "Image-Comprehension", "detection_ap@50", "*_keypoint_detection"),
    _Rule("boxes", "Image-Comprehension", "detection_ap@10"),
    _Rule("boxes", "Image-Comprehension", "detection_ap@50"),
    _Rule("boxes", "Image-Comprehension", "detection_ap@75"),
    _Rule("labels", "Image-Comprehension", "miou", "*_semantic_segmentation"),
    _Rule("labels", "Image-Comprehension", "miou", "*_clothing_segmentation"),
    _Rule("labels", "Image-Comprehension", "miou", "*_painting_segmentation"),
    _Rule("mask", "Image-Comprehension", "miou"),
    _Rule("mask", "Image-Comprehension", "dice"),
    _Rule("map", "Image-Comprehension", "average_precision"),
    _Rule("depth", "Image-Comprehension", "rms"),
    _Rule("alpha", "Image-Comprehension", "sad"),
    _Rule("alpha", "Image-Comprehension", "mse"),
    _Rule("instances", "Image-Comprehension", "panoptic_quality"),
    _Rule("triplets", "Image-Comprehension", "recall@50"),
    _Rule("tube", "Video-Comprehension", "auc"),
    _Rule("tube", "Video-Comprehension", "m_viou"),
    _Rule("masks", "Video-Comprehension", "miou"),
    _Rule("saliency", "Video-Comprehension", "s_measure"),
    _Rule("depth", "Video-Comprehension", "abs_rel"),
    _Rule("flow", "Video-Comprehension", "epe"),
    _Rule("labels", "3D-Comprehension", "miou"),
    _Rule("labels", "3D-Comprehension", "instance_miou"),
    _Rule("instances", "3D-Comprehension", "map@50"),
    _Rule("poses", "3D-Comprehension", "rte"),
    _Rule("tracks", "3D-Comprehension", "amota"),
    _Rule("normals", "3D-Comprehension", "rmse"),
    _Rule("detections3d", "3D-Comprehension", "map"),
)
_OF_KEYS: Mapping[str, Form] = MappingProxyType({**{form: form for form in FORMS}, "keypoints": "instances"})
"""Form of the value under a key of ``output``. Other keys imply no form."""
_ALSO: Mapping[Form, frozenset[Form]] = MappingProxyType({
    "text": frozenset({"number"}),
    "number": frozenset({"text"}),
    "boxes": frozenset({"instances"}),
    "instances": frozenset({"boxes"}),
    "tube": frozenset({"boxes"}),
    "tracks": frozenset({"boxes"}),
    "detections3d": frozenset({"boxes"}),
    "mask": frozenset({"labels"}),
    "labels": frozenset({"mask", "image"}),
    "masks": frozenset({"mask"}),
    "map": frozenset({"mask", "image", "text", "number"}),
    "alpha": frozenset({"mask", "image"}),
    "saliency": frozenset({"mask", "masks", "image", "map"}),
    "depth": frozenset({"image"}),
    "normals": frozenset({"image"}),
    "flow": frozenset({"image"}),
})  # fmt: skip
"""Further forms with keys that may hold a row's reference. The row's own form is kept except for ``_OWN``."""
_OWN: frozenset[tuple[Form, Form]] = frozenset({
    ("boxes", "instances"), ("instances", "boxes"), ("mask", "labels"), ("labels", "mask"),
})  # fmt: skip
"""The row's and the key's form, for pairs whose key's form is the item's."""


@functools.lru_cache(maxsize=1024)
def form_of(facts: TaskFacts) -> Form:
    """Return the form of a task's answers, which its row of the workbook implies.

    Raises:
        DataError: no rule knows the row.
    """
    rule = next((rule for rule in _RULES if rule.fits(facts)), None)
    if rule is not None:
        return rule.form
    if facts.metric not in _TEXT_METRICS:
        raise DataError(f"task {facts.name!r}: no form of answers is known for the metric {facts.metric!r}")
    return "text"


def form_of_reference(facts: TaskFacts, key: str, value: object) -> Form:
    """Return the form of an item's answers, given its reference ``value`` under ``output.KEY``.

    It is the form of the row, with two exceptions. A key that names boxes, objects, a mask or class numbers decides if
    the row has another one of these (class numbers may be a picture under ``mask``). Numbers and words in a row of maps
    are labels of whole pictures. Generated answers have the form of the row, whatever they are compared with.
    """
    row = form_of(facts)
    named = _OF_KEYS.get(key)
    if facts.paradigm == "generation" or named == row:
        return row
    if row == "map" and named in (None, "text", "number"):
        # an anomaly map, or a picture's label: a number, or a text that is no path
        if isinstance(value, bool) or is_number(value):
            return "number"
        if not isinstance(value, str):
            return "map"
        is_path = "/" in value or PurePosixPath(value).suffix.casefold() in (*PICTURE_SUFFIXES, ".npy")
        return "map" if is_path and named != "text" else "text"
    if named is None or (row, named) not in _OWN or (row == "labels" and isinstance(value, str)):
        return row
    return named


def suits(form: Form, key: str) -> bool:
    """Return whether a key of ``output`` names the form."""
    return _OF_KEYS.get(key) == form


def may_hold(facts: TaskFacts, key: str) -> bool:
    """Return whether a key of ``output`` can hold the reference of a task: it names a fitting form, or no form."""
    row = form_of(facts)
    named = _OF_KEYS.get(key)
    return facts.paradigm == "generation" or named in (None, row) or named in _ALSO.get(row, ())


KeyPath = tuple[str, ...]
"""Keys from the item inwards."""
_LAYERS = ("default", "sheets", "metrics", "tasks")
_KEYS = ("prompt", "media", "output", "form", "reference")
_KINDS: tuple[MediaKind, ...] = get_args(MediaKind)


class FieldMap(Struct, frozen=True):
    """Key paths of a task's items. The first existing one counts."""

    prompt: tuple[KeyPath, ...] = ()
    media: Mapping[MediaKind, tuple[KeyPath, ...]] = field(default_factory=dict)
    output: tuple[KeyPath, ...] = ()
    form: Form | None = None
    """Form of answers, or ``None`` if the reference's key and the row imply it."""
    is_required: bool = True
    """Whether an item without these keys in its ``output`` cannot be evaluated (otherwise it has no reference)."""


def load_field_maps(path: Path | None) -> Callable[[TaskFacts], FieldMap]:
    """Return a function for the field map of a task: the package's, overridden by a user's YAML file.

    Later layers override earlier ones. Each has ``default``, ``sheets``, ``metrics`` and ``tasks`` (by
    ``TaskFacts.id``), which hold entries of ``prompt``, ``media``, ``output``, ``form`` and ``is_required``, as far as
    they are given.

    Raises:
        DataError: the file cannot be read, or holds unknown keys or values.
        UnknownNameError: it names an unknown task, sheet or metric.
    """
    layers = [_package_layer(), *([] if path is None else [_layer(path)])]

    def map_of(facts: TaskFacts) -> FieldMap:
        found = FieldMap()
        for layer in layers:
            keys = (("sheets", facts.sheet), ("metrics", facts.metric), ("tasks", facts.id))
            for entry in (layer["default"], *(layer[name].get(key, {}) for name, key in keys)):
                found = replace(found, **entry)
        return found

    return map_of


@functools.cache
def _package_layer() -> Mapping[str, Any]:
    return _layer(Path(__file__).with_name("field_maps.yaml"))


def _layer(path: Path) -> Mapping[str, Any]:
    try:
        content = parse_text(read_text(path), path)
    except TaskError as error:
        raise DataError(str(error)) from error
    found: dict[str, Any] = {name: {} for name in _LAYERS}
    stated: dict[str, Any] = {name: _mapping(content.get(name), f"{path}: `{name}`") for name in _LAYERS}
    stated["tasks"] = {**stated["tasks"], **{name: content[name] for name in content if name not in _LAYERS}}
    found["default"] = _entry(stated["default"], f"{path}: `default`")
    for name in _LAYERS[1:]:
        for key, entry in stated[name].items():
            found[name][_known(name, str(key))] = _entry(entry, f"{path}: `{key}`")
    return found


def _known(layer: str, name: str) -> str:
    """Return the key of a sheet, metric or task."""
    if layer == "tasks":
        return find_task(name).id
    known = sheets() if layer == "sheets" else metrics()
    if name not in known:
        raise UnknownNameError(layer.removesuffix("s"), name, known)
    return name


def _entry(value: object, where: str) -> dict[str, Any]:
    """Read the given fields of a ``FieldMap``."""
    return {key: made for name, given in _mapping(value, where).items() for key, made in _field(name, given, where)}


def _field(name: str, given: object, where: str) -> Iterator[tuple[str, Any]]:
    match name, given:
        case "prompt" | "output", _:
            yield name, _paths(given, f"{where}: `{name}`")
        case "media", _:
            yield name, _media(given, f"{where}: `media`")
        case "form", str() if given in FORMS:
            yield name, given
        case "reference", "required" | "optional":
            yield "is_required", given == "required"
        case "form" | "reference", _:
            known = FORMS if name == "form" else ("required", "optional")
            raise DataError(f"{where}: `{name}` is {given!r:.80}; one of {', '.join(known)} is expected")
        case _:
            raise UnknownNameError("key", str(name), _KEYS, f"({where}: a field map has {', '.join(_KEYS)})")


def _media(value: object, where: str) -> Mapping[MediaKind, tuple[KeyPath, ...]]:
    found: dict[MediaKind, tuple[KeyPath, ...]] = {}
    for name, paths in _mapping(value, where).items():
        kind = next((kind for kind in _KINDS if kind == name), None)
        if kind is None:
            raise UnknownNameError("kind of media", str(name), _KINDS, f"({where}: {', '.join(_KINDS)})")
        found[kind] = _paths(paths, f"{where}: `{kind}`")
    return MappingProxyType(found)


def _paths(value: object, where: str) -> tuple[KeyPath, ...]:
    texts: Sequence[object] = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) and all(text.split(".")) for text in texts):
        raise DataError(
            f"{where} is {value!r:.80}; keys joined by dots (input.prompt), or a list of them, are expected"
        )
    return tuple(tuple(str(text).split(".")) for text in texts)


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise DataError(f"{where} is {value!r:.80}; keys with values are expected")
    return value
