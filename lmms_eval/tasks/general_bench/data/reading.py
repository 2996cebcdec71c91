"""Reading of an annotation's entries as items, by the schema of each kind of task.

The benchmark's README lists the keys that are read. Values of other keys stay in ``Item.raw``.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.data import records
from lmms_eval.tasks.general_bench.data.forms import FieldMap, KeyPath, form_of, form_of_reference, may_hold, suits
from lmms_eval.tasks.general_bench.facts import LANGUAGE, TaskFacts, find_task
from lmms_eval.tasks.general_bench.items import Annotation, Form, Item, MediaInput, MediaKind
from lmms_eval.tasks.general_bench.prompts.forms import LOWER_CASED
from lmms_eval.tasks.general_bench.readers.regions import MAX_FRAMES

_LISTS: frozenset[Form] = frozenset({"boxes", "tube", "triplets"})
_OBJECTS: frozenset[Form] = frozenset({"mask", "masks", "instances", "tracks", "detections3d"})
"""Forms with the readers' own JSON, or paths."""
_PATHS_OR_LISTS: frozenset[Form] = frozenset({"points", "poses", "notes"})


_Found = tuple[records.Record, str]
"""The object that has the last key of a path, and that key."""


def read_mapped_item(source: records.ItemSource, fields: FieldMap) -> Item:
    """Read an item by a field map.

    Raises:
        DataError: a value is of another kind.
        NotEvaluated: the item has an output, but nothing under the map's keys.
    """
    if "input" in source.top.values:
        source.top.record("input")
    prompt = next(_values(source.top, fields.prompt), None)
    found = _mapped_reference(source, fields)
    form = fields.form or form_of(source.facts)
    if found is not None and fields.form is None:
        form = form_of_reference(source.facts, found[1], found[0].values[found[1]])
    media: list[MediaInput] = []
    for kind, paths in fields.media.items():  # the first existing medium of each kind
        media += next((records.media_of(kind, *one, source.annotation) for one in _values(source.top, paths)), ())
    reference = None if found is None else _checked(form, *found)
    return source.item(form, "" if prompt is None else prompt[0].text(prompt[1]), tuple(media), reference)


def _values(top: records.Record, paths: tuple[KeyPath, ...]) -> Iterator[_Found]:
    """Yield the existing values, in the order of the paths."""
    for path in paths:
        record: records.Record | None = top
        for key in path[:-1]:
            is_there = record is not None and isinstance(record.values.get(key), Mapping)
            record = record.record(key) if record is not None and is_there else None
        if record is not None and record.has(path[-1]):
            yield record, path[-1]


def _mapped_reference(source: records.ItemSource, fields: FieldMap) -> _Found | None:
    """Return the value under a key that names the row's form, else the first one that fits it."""
    found = list(_values(source.top, fields.output))
    if fields.form is None:
        found = [one for one in found if may_hold(source.facts, one[1])]
    row = fields.form or form_of(source.facts)
    if found:
        return next((one for one in found if suits(row, one[1])), found[0])
    if not source.has_output or not fields.is_required:
        return None
    output = source.top.values["output"]
    subject, has = "the item's output", "is no object"
    if isinstance(output, Mapping):
        keys = sorted(str(key) for key in output)
        subject, has = "the item", f"has output keys {', '.join(keys[:10])}"[:300]
    known = ", ".join(".".join(path) for path in fields.output) or "no keys"
    raise NotEvaluated(
        f"not evaluated: schema unknown: {subject} {has}; give a field map that names those of {source.facts.name!r} "
        f"(it has {known})"
    )


def _checked(form: Form, record: records.Record, key: str) -> Any:
    """Check that the reference is of a kind that the form may have, and return it. Readers check it further."""
    value, where = record.values[key], f"{record.where}: `{key}`"
    if form == "number":
        return _number(value, where)
    if form == "text" or key == "text":
        return record.answer(key)
    if isinstance(value, str) and form not in _LISTS:
        return records.checked_path(value, where)
    if form == "image" and isinstance(value, list) and value:
        return [records.checked_path(path, where) for path in value]
    if not isinstance(value, list if form not in _OBJECTS else list | Mapping):
        paths = "a path, a list or an object" if form in _OBJECTS else "a path or a list"
        raise DataError(f"{where} is {value!r:.80}; {'a list' if form in _LISTS else paths} is expected")
    if form not in _LISTS | _OBJECTS | _PATHS_OR_LISTS:
        raise DataError(f"{where} is {value!r:.80}; a path is expected")
    return value


def _number(value: object, where: str) -> Any:
    """Read a number, or a text of a number. True is 1."""
    if isinstance(value, bool) or records.is_number(value):
        return int(value) if isinstance(value, bool) else value
    with contextlib.suppress(ValueError):
        if isinstance(value, str) and records.is_number(float(value)):
            return value
    raise DataError(f"{where} is {value!r:.80}; a number is expected")


INTENT_PARTS = ("action", "object", "location")
"""Maps of the annotation's ``intent_label``, in the order of an answer's three class numbers."""
_SEPARATOR = ","
_BACKSLASHES = frozenset(map(find_task, ("Music Genre Classification", "Speech Command", "Vocal Technique Detection")))
"""Tasks with backslashes in their paths."""
_BIRD = find_task("Bird Sound Detection")
_NOTES = find_task("Note Qualities Analysis")
_INTENT = find_task("Intent Classification")
_YES_NO: Mapping[str, str] = MappingProxyType({"1": "Yes", "0": "No", "yes": "Yes", "no": "No"})


def read_sound_item(source: records.ItemSource) -> Item:
    """Read the sound, prompt and text of an item. Raises ``DataError`` if a key is missing or of another kind."""
    given = source.top.record("input")
    if source.facts in _BACKSLASHES and isinstance(given.values.get("audio_file"), str):
        straight = {**given.values, "audio_file": given.values["audio_file"].replace("\\", "/")}
        given = records.Record(straight, given.where)
    prompt, media = given.text("prompt"), records.media_of("audio", given, "audio_file", source.annotation)
    return source.item(form_of(source.facts), prompt, media, _sound_label(source) if source.has_output else None)


def _sound_label(source: records.ItemSource) -> str | list[str]:
    """Read the reference of a sound, which some tasks state as a number or in another case than their answers."""
    output = source.output
    value = output.values.get("text")
    if source.facts is _BIRD:  # 1 is Yes, any other number No
        number = str(int(value == 1)) if isinstance(value, int) else value
        if not isinstance(number, str) or number.strip().casefold() not in _YES_NO:
            raise output.wrong("text", "0, 1, Yes or No")
        return _YES_NO[number.strip().casefold()]
    if source.facts is _INTENT:  # three numbers, each by its own map (the reference looks up all in the first)
        numbers = re.split(r"[\s,]+", value.strip(" []()")) if isinstance(value, str) else value
        if not isinstance(numbers, list) or len(numbers) != len(INTENT_PARTS):
            raise output.wrong("text", "three class numbers (action, object, location)")
        where = f"{output.where}: the annotation's `intent_label`"
        labels = records.Record.of(source.annotation.head.get("intent_label"), where)
        return _SEPARATOR.join(_name(number, labels, part) for number, part in zip(numbers, INTENT_PARTS, strict=True))
    answer = output.answer("text")
    if source.facts is _NOTES:
        return answer if isinstance(answer, str) else _SEPARATOR.join(answer)
    if source.facts in LOWER_CASED:
        return answer.lower() if isinstance(answer, str) else [one.lower() for one in answer]
    return answer


def _name(number: object, labels: records.Record, part: str) -> str:
    """Find a class's name by its number. A map goes from number to name, from name to number, or is a list."""
    if isinstance(number, bool) or not isinstance(number, int | str) or not str(number).isdigit():
        raise DataError(f"{labels.where}: {number!r:.80} is no class number")
    names = labels.values.get(part)
    if isinstance(names, list):
        names = {str(place): name for place, name in enumerate(names)}
    if not isinstance(names, Mapping):
        raise labels.wrong(part, "a map of class numbers and names")
    if isinstance(names.get(str(number)), str):
        return str(names[str(number)])
    for name, value in names.items():
        if not isinstance(value, bool) and str(value) == str(number):
            return str(name)
    raise DataError(f"{labels.where}: `{part}` has no class {number!r:.80}")


Tube = list[records.Box | None]
"""For each frame a box, or ``None`` if the object is out of sight."""


def tube_of(record: records.Record) -> Tube | None:
    """Read the tube of an item's ``trajectory`` over its ``frame_count``, or return ``None`` without a trajectory.

    There are two conventions (General-Bench specification §2.3): a list of boxes with both bounds counted from one, or
    an object from frame numbers to ``{bbox}`` with bounds counted from zero and an exclusive end. Raises ``DataError``
    if bounds or boxes are of another kind, outside the video, or do not fit each other.
    """
    if not record.has("trajectory"):
        return None
    frames = record.count("frame_count", MAX_FRAMES)
    trajectory = record.values["trajectory"]
    start, end = record.count("tube_start_frame", MAX_FRAMES), record.count("tube_end_frame", MAX_FRAMES)
    boxes: dict[int, records.Box | None] = {}
    if isinstance(trajectory, list):
        boxes = _listed_boxes(trajectory, start - 1, end - 1, frames, record)
    elif isinstance(trajectory, Mapping):
        for number, value in trajectory.items():
            where = f"{record.where}: `trajectory` of frame {number!r:.20}"
            if not (number.isascii() and number.isdigit() and len(number) < 10):
                raise DataError(f"{where}: a frame number is expected")
            if start <= int(number) < end:
                box = None if value is None else records.Record.of(value, where).values.get("bbox")
                boxes[int(number)] = records.box_of(box, f"{where}: `bbox`")
    else:
        raise record.wrong("trajectory", "a list of boxes, or an object from frame numbers to {bbox}")
    if boxes and not 0 <= min(boxes) <= max(boxes) < frames:
        raise DataError(f"{record.where}: frames {start} to {end} of the tube are outside the video's {frames}")
    return [boxes.get(frame) for frame in range(frames)]


def _listed_boxes(
    trajectory: list[Any], first: int, last: int, frames: int, record: records.Record
) -> dict[int, records.Box | None]:
    """Return boxes by frame. The list covers the frames of the tube, with or without its end, or the whole video."""
    boxes = [
        records.box_of(value, f"{record.where}: `trajectory` at {place}") for place, value in enumerate(trajectory)
    ]
    if len(boxes) in (last - first + 1, last - first):
        return {first + place: box for place, box in enumerate(boxes)}
    if len(boxes) == frames:
        return {frame: boxes[frame] for frame in range(max(first, 0), min(last + 1, frames))}
    raise DataError(
        f"{record.where}: `trajectory` has {len(boxes)} boxes; its tube has {last - first + 1} frames and the video "
        f"{frames}"
    )


_VIDEOS: Mapping[str, MediaKind] = MappingProxyType(
    {"video_file_list": "frames", "video_folder": "frames", "video_file": "video", "video_path": "video"}
)
_DEPTHS = "depth"
"""Folder of the depth maps of a task's videos, which are in ``video``."""


def read_video_item(source: records.ItemSource, fields: FieldMap) -> Item:
    """Read an item by the schema of its task's metric. Raises ``DataError`` if a key is missing or of another kind."""
    top, form = source.top, form_of(source.facts)
    if form == "saliency":
        return read_mapped_item(source, fields)
    if form == "tube" and source.facts.metric == "m_viou":  # action detection and grounding: a flat item
        media = records.media_of("video", top, "video_path", source.annotation)
        return source.item("tube", top.text("caption"), media, tube_of(top))
    if form == "depth":  # paths in ``input`` and ``output``, below ``video`` and ``depth``
        media = records.media_of("video", top, "input", source.annotation)
        reference = None
        if source.has_output:
            path = records.checked_path(top.values["output"], f"{top.where}: `output`")
            is_below = PurePosixPath(path).parts[0] == _DEPTHS
            reference = path if is_below else str(PurePosixPath(_DEPTHS, path))
        return source.item("depth", "", media, reference)
    given = top.record("input")
    key = next((key for key in _VIDEOS if given.has(key)), None)
    if form == "masks":
        if key is None:
            raise given.wrong("video_folder", "the folder of a video's frames")
        media = records.media_of(_VIDEOS[key], given, key, source.annotation)
        masks = _frame_masks(source.output) if source.has_output else None
        return source.item("masks", given.optional_text("prompt"), media, masks)
    prompt = given.optional_text("prompt") if form == "flow" else given.text("prompt")
    answer = _video_answer(source.output, form) if source.has_output else None
    if key is None:
        raise DataError(f"{given.where}: `{'` or `'.join(_VIDEOS)}` is missing")
    return source.item(form, prompt, records.media_of(_VIDEOS[key], given, key, source.annotation), answer)


def _video_answer(output: records.Record, form: Form) -> Any:
    """Read the boxes of a tracked object, a flow's path, or a text."""
    match form:
        case "tube":
            boxes = output.values.get("answer")  # one for each frame; null or four zeros mean no object
            if not isinstance(boxes, list) or len(boxes) > MAX_FRAMES:
                raise output.wrong("answer", f"a list of [x, y, w, h] for each frame, at most {MAX_FRAMES},")
            return [
                records.box_of(box, f"{output.where}: `answer` of frame {frame}") for frame, box in enumerate(boxes)
            ]
        case "flow":
            return output.path("flow")
    return output.answer("answer" if output.has("answer") else "text")


def _frame_masks(output: records.Record) -> list[Mapping[str, Any] | None]:
    """Read run lengths (COCO's) by frame, in the order of the keys, with ``None`` if the object is out of sight."""
    if len(output.values) > MAX_FRAMES:
        raise output.wrong("mask", f"a mask for each of at most {MAX_FRAMES} frames")
    frames = [output.record(name) for name in output.values]
    return [
        None if "mask" in frame.values and not frame.has("mask") else dict(frame.record("mask").values)
        for frame in frames
    ]


_DIALOGUE = "Dialogue"
_ACTION_ID = "original_video_id"
"""Replaces a missing ``id`` in the flat items of action detection and grounding."""


class ItemProblem(Struct, frozen=True):
    """An entry that is not an item."""

    index: int
    """Position in the annotation's ``data``, from 0."""
    id: Any
    """Id of the entry, or ``None``."""
    message: str


class Items(Struct, frozen=True):
    """A task's items."""

    items: tuple[Item, ...]
    problems: tuple[ItemProblem, ...]
    """Entries that cannot be read."""
    dropped: tuple[ItemProblem, ...]
    """Entries that the benchmark excludes: dialogues without a turn."""
    duplicates: tuple[ItemProblem, ...] = ()
    """Items with the id of an earlier one. They still count, with the same prediction."""


def read_item(facts: TaskFacts, annotation: Annotation, raw: Any, prediction_folder: Path, fields: FieldMap) -> Item:
    """Read an entry ``raw`` of an annotation's ``data``. Of the annotation, only folder and head are looked at.

    Raises:
        DataError: a key is missing or of another kind; the message names item and key.
        NotEvaluated: the item has an output, but under no key that is known.
    """
    if facts.modality == LANGUAGE:
        from lmms_eval.tasks.general_bench.nlp.types import read_nlp_item

        return read_nlp_item(facts, annotation, raw, prediction_folder)
    top = records.Record.of(raw, f"{annotation.file}: an item")
    key = _ACTION_ID if facts.metric == "m_viou" and not top.has("id") else "id"
    if not top.has(key):
        raise DataError(f"{top.where} has no `id`")
    item_id = top.values[key]
    try:
        records.id_key(item_id)
    except DataError as error:
        raise DataError(f"{top.where}: {error}") from error
    record = records.Record(top.values, f"{annotation.file}: item {item_id!r:.80}")
    source = records.ItemSource(facts, annotation, record, item_id, prediction_folder)
    # a field map that names a form, as a user's map may for any schema, takes precedence
    if fields.form is None and facts.sheet == "Audio-Comprehension":
        return read_sound_item(source)
    if fields.form is None and facts.sheet == "Video-Comprehension":
        return read_video_item(source, fields)
    return read_mapped_item(source, fields)


def read_items(facts: TaskFacts, annotation: Annotation, prediction_folder: Path, fields: FieldMap) -> Items:
    """Read all entries of an annotation. Unreadable ones become problems.

    Raises ``NotEvaluated`` if no entry could be read, at least one because of unknown keys.
    """
    items: list[Item] = []
    problems: list[ItemProblem] = []
    dropped: list[ItemProblem] = []
    duplicates: list[ItemProblem] = []
    unknown: NotEvaluated | None = None
    is_dialogue = facts.modality == LANGUAGE and annotation.type == _DIALOGUE
    for index, raw in enumerate(annotation.data):
        stated_id = raw.get("id") if isinstance(raw, dict) else None
        if is_dialogue and isinstance(raw, dict) and raw.get("dialog") == []:
            dropped.append(ItemProblem(index, stated_id, "a dialogue without a turn"))
            continue
        try:
            items.append(read_item(facts, annotation, raw, prediction_folder, fields))
        except DataError as error:
            problems.append(ItemProblem(index, stated_id, str(error)))
        except NotEvaluated as error:
            unknown = unknown or error
            problems.append(ItemProblem(index, stated_id, f"item {stated_id!r:.80}: {error.reason}"))
    if unknown is not None and not items:
        raise unknown
    if any(item.form == "map" for item in items):  # the labels of sound pictures then count as empty maps
        items = [replace(item, form="map") if item.form in ("text", "number") else item for item in items]
    first: dict[str, int] = {}
    for index, item in enumerate(items):
        key = records.id_key(item.id)
        if first.setdefault(key, index) != index:
            message = f"{item.folder}: the id {key:.80} is that of an earlier item, too"
            duplicates.append(ItemProblem(index, item.id, message))
    return Items(tuple(items), tuple(problems), tuple(dropped), tuple(duplicates))
