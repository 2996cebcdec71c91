"""Items with keys from a field map: images, 3D, and all generation tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.data.field_maps import FieldMap, KeyPath
from lmms_eval.tasks.general_bench.data.forms import form_of, form_of_reference, may_hold, suits
from lmms_eval.tasks.general_bench.data.records import ItemDraft, ItemSource, Record, checked_path, is_number, media_of
from lmms_eval.tasks.general_bench.items import Form, MediaInput

_LISTS: frozenset[Form] = frozenset({"boxes", "tube", "triplets"})
_OBJECTS: frozenset[Form] = frozenset({"mask", "masks", "instances", "tracks", "detections3d"})
"""Forms with the readers' own JSON, or paths."""
_PATHS_OR_LISTS: frozenset[Form] = frozenset({"points", "poses", "notes"})


class _Found(Struct, frozen=True):
    """The value at a key path of an item."""

    record: Record
    """The object that has the last key."""
    key: str

    @property
    def value(self) -> Any:
        return self.record.values[self.key]


def read_mapped_item(source: ItemSource, fields: FieldMap) -> ItemDraft:
    """Read an item by a field map.

    Raises:
        DataError: a value is of another kind.
        NotEvaluated: the item has an output, but nothing under the map's keys.
    """
    if "input" in source.top.values:
        source.top.record("input")
    prompt = next(_values(source.top, fields.prompt), None)
    found = _reference(source, fields)
    form = fields.form or form_of(source.facts)
    if found is not None:
        form = fields.form or form_of_reference(source.facts, found.key, found.value)
    return ItemDraft(
        form=form,
        prompt="" if prompt is None else prompt.record.text(prompt.key),
        media=_media(source, fields),
        reference=None if found is None else _checked(form, found),
    )


def _values(top: Record, paths: tuple[KeyPath, ...]) -> Iterator[_Found]:
    """Yield the existing values, in the order of the paths."""
    records: dict[KeyPath, Record | None] = {(): top}
    for path in paths:
        record = _inner(path[:-1], records)
        if record is not None and record.has(path[-1]):
            yield _Found(record, path[-1])


def _inner(keys: KeyPath, records: dict[KeyPath, Record | None]) -> Record | None:
    """Return the object at a key path, cached in ``records``, or ``None``."""
    if keys not in records:
        outer = _inner(keys[:-1], records)
        is_there = outer is not None and isinstance(outer.values.get(keys[-1]), Mapping)
        records[keys] = outer.record(keys[-1]) if outer is not None and is_there else None
    return records[keys]


def _media(source: ItemSource, fields: FieldMap) -> tuple[MediaInput, ...]:
    """Return the first existing medium of each kind."""
    media: list[MediaInput] = []
    for kind, paths in fields.media.items():
        found = next(_values(source.top, paths), None)
        if found is not None:
            media.extend(media_of(kind, found.record, found.key, source.annotation))
    return tuple(media)


def _reference(source: ItemSource, fields: FieldMap) -> _Found | None:
    """Return the value under a key that names the row's form, else the first one that fits it."""
    found = list(_values(source.top, fields.output))
    if fields.form is None:
        found = [one for one in found if may_hold(source.facts, one.key)]
    row = fields.form or form_of(source.facts)
    named = [one for one in found if suits(row, one.key)]
    if found:
        return (named or found)[0]
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


def _checked(form: Form, found: _Found) -> Any:
    """Check that the reference is of a kind that the form may have, and return it. Readers check it further."""
    record, key, value = found.record, found.key, found.value
    where = f"{record.where}: `{key}`"
    if form == "number":
        return _number(value, where)
    if form == "text" or key == "text":
        return record.answer(key)
    if isinstance(value, str) and form not in _LISTS:
        return checked_path(value, where)
    if form == "image" and isinstance(value, list) and value:
        return [checked_path(path, where) for path in value]
    if not isinstance(value, list if form not in _OBJECTS else list | Mapping):
        paths = "a path, a list or an object" if form in _OBJECTS else "a path or a list"
        raise DataError(f"{where} is {value!r:.80}; {'a list' if form in _LISTS else paths} is expected")
    if form not in _LISTS | _OBJECTS | _PATHS_OR_LISTS:
        raise DataError(f"{where} is {value!r:.80}; a path is expected")
    return value


def _number(value: object, where: str) -> Any:
    """Read a number, or a text of a number. True is 1."""
    if isinstance(value, bool) or is_number(value):
        return int(value) if isinstance(value, bool) else value
    try:
        if isinstance(value, str) and is_number(float(value)):
            return value
    except ValueError:
        pass
    raise DataError(f"{where} is {value!r:.80}; a number is expected")
