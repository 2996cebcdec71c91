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
from lmms_eval.tasks.general_bench.facts import TaskFacts, find_task, metrics, sheets
from lmms_eval.tasks.general_bench.items import Form, MediaKind
from lmms_eval.tasks.general_bench.readers.pictures import PICTURE_SUFFIXES
from lmms_eval.tasks.yaml.loader import parse_text
from lmms_eval.utils.files import read_text

FORMS: tuple[Form, ...] = get_args(Form)
_TEXT_METRICS = frozenset({
    "accuracy", "bleu1", "bleu4", "f1", "micro_f1", "codebleu", "rouge1", "rouge_l", "anls", "exact_match", "cider",
    "macro_accuracy", "gpt_score",
})  # fmt: skip
_RULES: Mapping[str, Form] = MappingProxyType(
    {
        "NLP rmse *": "number",
        "Image-Generation auc *": "map",
        "Image-Generation * *": "image",
        "Video-Generation * *": "video",
        "Audio-Generation pitch_class_consistency *": "notes",
        "Audio-Generation e_accuracy *": "notes",
        "Audio-Generation * *": "audio",
        "3D-Generation chamfer_distance *": "points",
        "3D-Generation fid *": "motion",
        "3D-Generation * *_mesh_generation": "mesh",
        "3D-Generation * *": "points",
        "Image-Comprehension mae *": "number",
        "Image-Comprehension detection_ap@50 *_instance_segmentation": "instances",
        "Image-Comprehension detection_ap@50 *_keypoint_detection": "instances",
        "Image-Comprehension detection_ap@10 *": "boxes",
        "Image-Comprehension detection_ap@50 *": "boxes",
        "Image-Comprehension detection_ap@75 *": "boxes",
        "Image-Comprehension miou *_semantic_segmentation": "labels",
        "Image-Comprehension miou *_clothing_segmentation": "labels",
        "Image-Comprehension miou *_painting_segmentation": "labels",
        "Image-Comprehension miou *": "mask",
        "Image-Comprehension dice *": "mask",
        "Image-Comprehension average_precision *": "map",
        "Image-Comprehension rms *": "depth",
        "Image-Comprehension sad *": "alpha",
        "Image-Comprehension mse *": "alpha",
        "Image-Comprehension panoptic_quality *": "instances",
        "Image-Comprehension recall@50 *": "triplets",
        "Video-Comprehension auc *": "tube",
        "Video-Comprehension m_viou *": "tube",
        "Video-Comprehension miou *": "masks",
        "Video-Comprehension s_measure *": "saliency",
        "Video-Comprehension abs_rel *": "depth",
        "Video-Comprehension epe *": "flow",
        "3D-Comprehension miou *": "labels",
        "3D-Comprehension instance_miou *": "labels",
        "3D-Comprehension map@50 *": "instances",
        "3D-Comprehension rte *": "poses",
        "3D-Comprehension amota *": "tracks",
        "3D-Comprehension rmse *": "normals",
        "3D-Comprehension map *": "detections3d",
    }
)
"""Form of the answers of rows, by a pattern of sheet, metric and id. The first one that fits counts."""
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
    """Return the form of answers that a task's row implies. Raises ``DataError`` if no rule knows the row."""
    row = f"{facts.sheet} {facts.metric} {facts.id}"
    for pattern, form in _RULES.items():
        if fnmatchcase(row, pattern):
            return form
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


@functools.cache
def load_field_maps(path: Path | str | None) -> Callable[[TaskFacts], FieldMap]:
    """Return a function for the field map of a task: the package's, overridden by a user's YAML file.

    Later layers override earlier ones. Each has ``default``, ``sheets``, ``metrics`` and ``tasks`` (by
    ``TaskFacts.id``), which hold entries of ``prompt``, ``media``, ``output``, ``form`` and ``is_required``, as far as
    they are given.

    Raises:
        DataError: the file cannot be read, or holds unknown keys or values.
        UnknownNameError: it names an unknown task, sheet or metric.
    """
    layers = [_package_layer(), *([] if path is None else [_layer(Path(path))])]

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
    layers: dict[str, Any] = {name: _mapping(content.get(name), f"{path}: `{name}`") for name in _LAYERS}
    layers["tasks"] = {**layers["tasks"], **{name: content[name] for name in content if name not in _LAYERS}}
    found: dict[str, Any] = {"default": _entry(layers["default"], f"{path}: `default`")}
    known: Mapping[str, Mapping[str, Any]] = {"sheets": sheets(), "metrics": metrics()}
    for layer in _LAYERS[1:]:
        found[layer] = {}
        for name, entry in layers[layer].items():
            key = find_task(str(name)).id if layer == "tasks" else str(name)
            if layer in known and key not in known[layer]:
                raise UnknownNameError(layer.removesuffix("s"), key, known[layer])
            found[layer][key] = _entry(entry, f"{path}: `{name}`")
    return found


def _entry(value: object, where: str) -> dict[str, Any]:
    """Read the given fields of a ``FieldMap``."""
    return {key: made for name, given in _mapping(value, where).items() for key, made in _field(name, given, where)}


def _field(name: str, given: object, where: str) -> Iterator[tuple[str, Any]]:
    match name, given:
        case "prompt" | "output", _:
            yield name, _paths(given, f"{where}: `{name}`")
        case "media", _:
            media = _mapping(given, f"{where}: `media`")
            for kind in media:
                if kind not in _KINDS:
                    message = f"({where}: `media`: {', '.join(_KINDS)})"
                    raise UnknownNameError("kind of media", str(kind), _KINDS, message)
            yield name, {kind: _paths(paths, f"{where}: `media`: `{kind}`") for kind, paths in media.items()}
        case "form", str() if given in FORMS:
            yield name, given
        case "reference", "required" | "optional":
            yield "is_required", given == "required"
        case "form" | "reference", _:
            known = FORMS if name == "form" else ("required", "optional")
            raise DataError(f"{where}: `{name}` is {given!r:.80}; one of {', '.join(known)} is expected")
        case _:
            raise UnknownNameError("key", str(name), _KEYS, f"({where}: a field map has {', '.join(_KEYS)})")


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
