"""Entries of an annotation as items: for each kind of task the schema that its data are written in.

Which keys are read is told in the benchmark's README; what stands under other keys stays in ``Item.raw``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.data.drafts import Draft, Source
from lmms_eval.tasks.general_bench.data.field_maps import FieldMap
from lmms_eval.tasks.general_bench.data.mapped import read_mapped_item
from lmms_eval.tasks.general_bench.data.records import Record, id_key
from lmms_eval.tasks.general_bench.data.sounds import read_sound_item
from lmms_eval.tasks.general_bench.data.videos import read_video_item
from lmms_eval.tasks.general_bench.facts import LANGUAGE, TaskFacts
from lmms_eval.tasks.general_bench.items import Annotation, Item

_DIALOGUE = "Dialogue"
_ACTION_ID = "original_video_id"
"""Stands for ``id`` where the flat items of action detection and grounding have none."""


@dataclass(frozen=True, slots=True)
class ItemProblem:
    """An entry that is no item."""

    index: int
    """From 0, in the annotation's ``data``."""
    id: Any
    """``None`` if it has none."""
    message: str


@dataclass(frozen=True, slots=True)
class Items:
    """A task's items."""

    items: tuple[Item, ...]
    problems: tuple[ItemProblem, ...]
    """Entries that cannot be read."""
    dropped: tuple[ItemProblem, ...]
    """Entries that the benchmark leaves out: dialogues without a turn."""
    duplicates: tuple[ItemProblem, ...] = ()
    """Items whose id an earlier one has; they are items all the same, and take the same prediction."""


def read_item(facts: TaskFacts, annotation: Annotation, raw: Any, prediction_folder: Path, fields: FieldMap) -> Item:
    """An entry of an annotation's ``data``.

    Args:
        facts: the task's row.
        annotation: only its folder and head are looked at.
        raw: the entry.
        prediction_folder: where relative paths of predictions start.
        fields: for the tasks that ``field_maps`` tells the keys of.

    Raises:
        DataError: a key is missing or of another kind; the message names item and key.
        NotEvaluated: the item has an output, but under no key that is known.
    """
    if facts.modality == LANGUAGE:
        from lmms_eval.tasks.general_bench.nlp.schemas import read_nlp_item

        return read_nlp_item(facts, annotation, raw, prediction_folder)
    top = Record.of(raw, f"{annotation.file}: an item")
    item_id = _id(facts, top)
    source = Source(facts, annotation, Record(top.values, f"{annotation.file}: item {item_id!r:.80}"))
    draft = _draft(source, fields)
    return Item(
        id=item_id,
        facts=facts,
        form=draft.form,
        prompt=draft.prompt,
        media=draft.media,
        reference=draft.reference,
        folder=annotation.folder,
        prediction_folder=prediction_folder,
        raw=top.values,
        head=annotation.head,
    )


def read_items(facts: TaskFacts, annotation: Annotation, prediction_folder: Path, fields: FieldMap) -> Items:
    """All entries of an annotation; those that cannot be read are problems of their own.

    Raises:
        NotEvaluated: no entry could be read, and one for its unknown keys.
    """
    items: list[Item] = []
    problems: list[ItemProblem] = []
    dropped: list[ItemProblem] = []
    unknown: NotEvaluated | None = None
    is_dialogue = facts.modality == LANGUAGE and annotation.type == _DIALOGUE
    for index, raw in enumerate(annotation.data):
        if is_dialogue and isinstance(raw, dict) and raw.get("dialog") == []:
            dropped.append(ItemProblem(index, _stated_id(raw), "a dialogue without a turn"))
            continue
        try:
            items.append(read_item(facts, annotation, raw, prediction_folder, fields))
        except DataError as error:
            problems.append(ItemProblem(index, _stated_id(raw), str(error)))
        except NotEvaluated as error:
            unknown = unknown or error
            problems.append(ItemProblem(index, _stated_id(raw), f"item {_stated_id(raw)!r:.80}: {error.reason}"))
    if unknown is not None and not items:
        raise unknown
    if any(item.form == "map" for item in items):  # the labels of sound pictures then count as empty maps
        items = [replace(item, form="map") if item.form in ("text", "number") else item for item in items]
    return Items(tuple(items), tuple(problems), tuple(dropped), tuple(_duplicates(items)))


def _draft(source: Source, fields: FieldMap) -> Draft:
    """By the field map for every task whose map states a form: a user's own map of any schema."""
    if fields.form is not None:
        return read_mapped_item(source, fields)
    match source.facts.sheet:
        case "Audio-Comprehension":
            return read_sound_item(source)
        case "Video-Comprehension":
            return read_video_item(source, fields)
    return read_mapped_item(source, fields)


def _id(facts: TaskFacts, top: Record) -> Any:
    key = _ACTION_ID if facts.metric == "m_viou" and not top.has("id") else "id"
    if not top.has(key):
        raise DataError(f"{top.where} has no `id`")
    try:
        id_key(top.values[key])
    except DataError as error:
        raise DataError(f"{top.where}: {error}") from error
    return top.values[key]


def _stated_id(raw: object) -> Any:
    return raw.get("id") if isinstance(raw, dict) else None


def _duplicates(items: Iterable[Item]) -> Iterable[ItemProblem]:
    first: dict[str, int] = {}
    for index, item in enumerate(items):
        key = id_key(item.id)
        if first.setdefault(key, index) != index:
            yield ItemProblem(index, item.id, f"{item.folder}: the id {key:.80} is that of an earlier item, too")
