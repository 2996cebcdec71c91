"""Readers of what trackers have stored without network, through the packages' own classes."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
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
    artifacts: dict[str, dict[str, Path]] = field(default_factory=dict)
    """Files by their names there, by artifact."""
    files: dict[str, list[bytes]] = field(default_factory=dict)
    """Contents of media, by key."""
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


def swanlab_run(folder: Path) -> StoredRun:
    """Read the log of an offline run: records in the package's own protocol, steps together."""
    import yaml
    from swanlab.proto.swanlab.record.v1 import record_pb2
    from swanlab.sdk.internal.core_python.store import DataStoreReader

    (path,) = folder.glob("*.swanlab")
    config = yaml.safe_load((folder / "files" / "config.yaml").read_text())
    found = StoredRun(config={name: entry["value"] for name, entry in config.items()})
    steps: dict[int, dict[str, Any]] = {}
    reader = DataStoreReader()
    reader.open(path)
    for content in reader:
        record = record_pb2.Record()
        record.ParseFromString(content)
        kind = record.WhichOneof("record_type")
        if kind == "start":
            found.id, found.name, found.project = record.start.id, record.start.name, record.start.project
        elif kind == "scalar":
            steps.setdefault(record.scalar.step, {})[record.scalar.key] = record.scalar.value.number
        elif kind == "media":
            paths = [next(folder.glob(f"media/*/{item.filename}")) for item in record.media.value.items]
            found.files[record.media.key] = [path.read_bytes() for path in paths]
        elif kind == "finish":
            found.exit_code = record.finish.state - 1  # the first state is that of a run that has finished
    reader.close()
    found.history = [steps[step] for step in sorted(steps)]
    for values in found.history:
        found.summary |= values
    return found


def trackio_runs(folder: Path, project: str) -> list[StoredRun]:
    """Read all runs of a project through the package, in a process that knows the folder."""
    script = (
        "import json, sys; from trackio.sqlite_storage import SQLiteStorage as storage; project = sys.argv[1]; "
        "runs = storage.get_run_records(project); "
        "print(json.dumps([[run, storage.get_logs(project, run['name'], run_id=run['id'])] for run in runs]))"
    )
    told = subprocess.run(
        [sys.executable, "-c", script, project],
        env={**os.environ, "TRACKIO_DIR": str(folder)}, capture_output=True, check=True, text=True,
    )  # fmt: skip
    found = []
    for run, history in json.loads(told.stdout.splitlines()[-1]):
        summary = {key: value for step in history for key, value in step.items()}
        found.append(StoredRun(run["id"], run["name"], project, history=history, summary=summary))
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
    found.artifacts[artifact.name] = {entry.path: Path(entry.local_path) for entry in artifact.manifest.contents}


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
