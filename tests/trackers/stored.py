"""Readers of what trackers have stored without network, through the packages' own classes."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_BLOCK, _FILE_HEADER, _HEADER = 32_768, 7, struct.Struct("<IHB")


@dataclass(slots=True)
class StoredRun:
    """A run as a tracker's files hold it."""

    id: str = ""
    name: str = ""
    project: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)
    artifacts: dict[str, list[str]] = field(default_factory=dict)
    """Names of files, by artifact."""
    exit_code: int | None = None


def wandb_run(folder: Path) -> StoredRun:
    """Read the log of an offline run: records in the package's own protocol."""
    from wandb.proto import wandb_internal_pb2

    (path,) = folder.glob("run-*.wandb")
    found = StoredRun()
    for content in _log_records(path.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(content)
        _take(found, record)
    return found


def _take(found: StoredRun, record: Any) -> None:
    kind = record.WhichOneof("record_type")
    if kind == "run":
        found.id, found.name, found.project = record.run.run_id, record.run.display_name, record.run.project
        _update(found.config, record.run.config.update)
    elif kind == "config":
        _update(found.config, record.config.update)
    elif kind == "history":
        found.history.append({_key(item): json.loads(item.value_json) for item in record.history.item})
    elif kind == "summary":
        _update(found.summary, record.summary.update)
    elif kind == "request" and record.request.WhichOneof("request_type") == "log_artifact":
        _artifact(found, record.request.log_artifact.artifact)
    elif kind == "artifact":
        _artifact(found, record.artifact)
    elif kind == "exit":
        found.exit_code = record.exit.exit_code


def _artifact(found: StoredRun, artifact: Any) -> None:
    found.artifacts[artifact.name] = [entry.path for entry in artifact.manifest.contents]


def _key(item: Any) -> str:
    return item.key or "/".join(item.nested_key)


def _update(values: dict[str, Any], items: Any) -> None:
    for item in items:
        values[_key(item)] = json.loads(item.value_json)


def _log_records(data: bytes) -> Iterator[bytes]:
    """The records of a log in blocks; long ones come in pieces."""
    position, pieces = _FILE_HEADER, b""
    while position + _HEADER.size <= len(data):
        left = _BLOCK - position % _BLOCK
        if left < _HEADER.size:
            position += left
            continue
        _, length, kind = _HEADER.unpack_from(data, position)
        position += _HEADER.size
        pieces += data[position : position + length]
        position += length
        if kind in (1, 4):  # whole, or the last piece
            yield pieces
            pieces = b""
