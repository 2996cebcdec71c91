"""Messages of the contract as lines of JSON, between a run and the process of a tracker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import orjson

from lmms_eval.trackers.contract import Beginning, Ending, Message, Place, Results, Step, Table, TaskSamples

_KINDS: dict[str, type[Message]] = {kind.__name__: kind for kind in (Beginning, Step, Results, TaskSamples, Ending)}


class TrackerError(Exception):
    """Failure of a tracker in words for people, or an error that its package raised, as its process tells it."""


def line_of(message: Message, **more: str) -> bytes:
    """Write a message as one line; ``more`` stands beside it."""
    content = {"kind": type(message).__name__, "content": asdict(message), **more}
    return orjson.dumps(content, default=str, option=orjson.OPT_NON_STR_KEYS)


def read_line(line: bytes) -> Mapping[str, Any]:
    """Read a line of ``line_of``: its ``message`` and what stands beside it."""
    found: dict[str, Any] = orjson.loads(line)
    content = found.pop("content")
    for part in ("rows", "columns", "pictures"):
        if part in content:
            content[part] = tuple(tuple(row) if isinstance(row, list) else row for row in content[part])
    if "tables" in content:
        content["tables"] = {
            name: Table(tuple(table["columns"]), tuple(map(tuple, table["rows"])))
            for name, table in content["tables"].items()
        }
    return {**found, "message": _KINDS[found["kind"]](**content)}


def reply_of(place: Place | None = None, error: str = "") -> bytes:
    """Write the reply to a message as one line."""
    return orjson.dumps({"place": None if place is None else asdict(place), "error": error})


def read_reply(line: bytes) -> Place | None:
    """Read a reply. Raises ``TrackerError`` for one that tells of an error."""
    found = orjson.loads(line)
    if found["error"]:
        raise TrackerError(found["error"])
    return None if found["place"] is None else Place(**found["place"])
