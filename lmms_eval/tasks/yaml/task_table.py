"""Many tasks from one YAML file and a table: a task for every row, groups from its columns.

``task_table`` of a YAML file names a tab-separated file whose first line holds the column names. In the texts below
that key, ``{column}`` is replaced by the row's cell. Every other key of the file holds for all its tasks.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from lmms_eval.errors import TaskError
from lmms_eval.tasks.yaml.loader import YamlReader, decode, encode
from lmms_eval.utils.files import Row, StatedPath, rows_of, state_of

TABLE_KEY = "task_table"
_KEYS = ("file", "task", "where", "set", "groups")
_COLUMN = re.compile(r"(?<!\{)\{(\w+)\}(?!\})")
"""The place of a cell. Doubled braces belong to Jinja templates."""
_pieces = functools.lru_cache(maxsize=4096)(_COLUMN.split)
"""Splits a text into texts and column names, in turn."""


class TaskTable(Struct, frozen=True):
    """The table of one YAML file."""

    where: str
    """The YAML file, for messages."""
    rows: Mapping[str, Row]
    """Rows by the names of their tasks, in order."""
    set: Mapping[str, Any]
    """Keys of every task; their texts may name columns."""
    groups: Mapping[str, Mapping[str, Any]]
    """Keys of every group by name, members included, in order of their first row."""

    def keys_of(self, name: str, common: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keys of one task or group of the table; ``common`` are the file's other keys.

        Raises ``TaskError`` if the table lacks the task, or a column that a text names.
        """
        if name in self.rows:
            own = filled(dict(self.set), self.rows[name], f"{self.where}: {TABLE_KEY}.set")
            return {**common, **own, "task": name}
        if name in self.groups:
            return dict(self.groups[name])
        raise TaskError(f"{self.where}: {TABLE_KEY} has neither a task nor a group {name!r}; was the table changed?")


def filled(value: Any, row: Row, where: str) -> Any:
    """Copy a YAML value with the row's cells filled in.

    Raises ``TaskError`` if a text names a column that the table lacks.
    """
    if isinstance(value, StatedPath):
        return StatedPath(_text(str(value), row, where), value.folder)
    if isinstance(value, str):
        return _text(value, row, where)
    if isinstance(value, Mapping):
        return {key: filled(item, row, where) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, row, where) for item in value]
    return value


def _text(template: str, row: Row, where: str) -> str:
    pieces = _pieces(template)
    if len(pieces) == 1:
        return template
    try:
        return "".join([row[piece] if number % 2 else piece for number, piece in enumerate(pieces)])
    except KeyError as error:
        raise TaskError(f"{where}: the table has no column {error}; there is: {', '.join(row)}") from None


def keys_of(reader: YamlReader, file: Path, name: str) -> dict[str, Any]:
    """Return the keys of a task or group: those of its file, or of its row if the file has a table.

    Raises ``TaskError`` if the file or its table cannot be read.
    """
    data = reader.read(file)
    if TABLE_KEY not in data:
        return data
    return table_of(data, file).keys_of(name, {key: value for key, value in data.items() if key != TABLE_KEY})


def table_of(data: Mapping[str, Any], file: Path) -> TaskTable:
    """Read the table that the mapping of a YAML file names.

    Raises ``TaskError`` if keys are wrong, the table cannot be read, or a name occurs twice.
    """
    spec, where = data[TABLE_KEY], str(file)
    if not isinstance(spec, Mapping) or not isinstance(spec.get("file"), str) or not isinstance(spec.get("task"), str):
        raise TaskError(f"{where}: {TABLE_KEY} needs file (a table with tab-separated columns) and task (a name)")
    unknown = next((key for key in spec if key not in _KEYS), None)
    if unknown is not None:
        raise TaskError(f"{where}: {TABLE_KEY}: unknown key {unknown!r}; there is: {', '.join(_KEYS)}")
    path = spec["file"].in_folder if isinstance(spec["file"], StatedPath) else file.parent / spec["file"]
    return _table(json.dumps(encode(spec)), where, path, state_of(path))


@functools.lru_cache(maxsize=32)
def _table(encoded: str, where: str, path: Path, state: tuple[int, int]) -> TaskTable:
    """Read a table once for the hundreds of tasks that need it one after the other."""
    spec = decode(json.loads(encoded))
    rows, wanted = rows_of(path, state), spec.get("where") or {}
    if not isinstance(wanted, Mapping) or any(column not in row for row in rows[:1] for column in wanted):
        raise TaskError(f"{where}: {TABLE_KEY}.where must map columns of the table to texts, not {wanted!r:.80}")
    template = spec["task"]
    named: dict[str, Row] = {}
    for row in (row for row in rows if all(row[column] == str(text) for column, text in wanted.items())):
        name = _text(template, row, f"{where}: {TABLE_KEY}.task")
        if name in named:
            raise TaskError(f"{where}: {TABLE_KEY} gives two tasks the name {name!r}")
        named[name] = row
    return TaskTable(where, named, spec.get("set") or {}, dict(_groups(named, spec.get("groups") or [], where)))


def _groups(named: Mapping[str, Row], levels: Sequence[Any], where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield groups by name. The first level holds tasks; each further level holds the groups of the level before."""
    place = f"{where}: {TABLE_KEY}.groups"
    if not isinstance(levels, list):
        raise TaskError(f"{place} must be a list, from the innermost group outwards")
    made: dict[str, dict[str, Any]] = {}
    for name, row in named.items():
        child = name
        for level in levels:
            keys = {"group": level} if isinstance(level, str) else level
            if not isinstance(keys, Mapping) or not isinstance(keys.get("group"), str):
                raise TaskError(f"{place}: an entry is a name, or a mapping with 'group': {level!r:.80}")
            group = _text(keys["group"], row, place)
            if group == child:  # two levels have the same name in this row
                continue
            if group not in made:
                made[group] = {**filled(dict(keys), row, place), "task": []}
            if child not in made[group]["task"]:
                made[group]["task"].append(child)
            child = group
    yield from made.items()
