"""Small tasks written for the tests of this folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from lmms_eval.api.request import Request, Response, Usage
from lmms_eval.api.task import Answer, TaskOptions
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.selection import select_tasks
from lmms_eval.tasks.yaml.task import YamlTask

ROWS = [
    {"question": "sky colour", "answer": "blue", "options": ["red", "blue"], "label": 1},
    {"question": "grass colour", "answer": "green", "options": ["green", "blue"], "label": 0},
    {"question": "snow colour", "answer": "white", "options": ["black", "white", "red"], "label": 1},
]
BASE = {
    "task": "probe",
    "dataset_path": "json",
    "dataset_kwargs": {"data_files": {"test": "rows.jsonl"}},
    "test_split": "test",
    "doc_to_text": "{{question}}?",
    "doc_to_target": "answer",
    "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
}


class Function(str):
    """Written into YAML as ``!function``."""


class _Dumper(yaml.SafeDumper):
    pass


_Dumper.add_representer(Function, lambda dumper, value: dumper.represent_scalar("!function", str(value), style=None))


def write_yaml(path: Path, data: Mapping[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.dump(dict(data), Dumper=_Dumper, sort_keys=False), encoding="utf-8")
    return path


def write_rows(folder: Path, rows: Sequence[Mapping[str, Any]] = ROWS, name: str = "rows.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def make_task(
    folder: Path,
    changes: Mapping[str, Any] | None = None,
    code: str = "",
    options: TaskOptions | None = None,
    rows: Sequence[Mapping[str, Any]] = ROWS,
) -> YamlTask:
    """A task in a folder of its own, not yet loaded; ``None`` in ``changes`` takes a key out."""
    data = {key: value for key, value in {**BASE, **(changes or {})}.items() if value is not None}
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder, rows)
    (folder / "utils.py").write_text(code, encoding="utf-8")
    path = write_yaml(folder / "probe.yaml", data)
    selection = select_tasks([str(path)], Catalogue(include_defaults=False), options or TaskOptions())
    task = selection.tasks[0]
    assert isinstance(task, YamlTask)
    return task


def loaded(folder: Path, *args: Any, **kwargs: Any) -> YamlTask:
    task = make_task(folder, *args, **kwargs)
    task.load()
    return task


def converse(
    task: YamlTask, doc_id: int, reply: Callable[[Request], Response | str], repeat: int = 0
) -> tuple[Answer, list[Request]]:
    """Run an exchange to its end; returns the answer and all requests."""
    exchange = task.exchange(doc_id, repeat)
    requests, asked = list(exchange.open()), []
    while requests:
        asked += requests
        replies = [reply(request) for request in requests]
        responses = [
            answer if isinstance(answer, Response) else Response(request.id, text=answer, usage=Usage(1, 2, 0))
            for request, answer in zip(requests, replies, strict=True)
        ]
        requests = list(exchange.advance(responses))
    return exchange.answer(), asked


def turns_of(request: Request) -> list[tuple[str, list[Any]]]:
    """Role and content of each message: texts as they are, media by their type."""
    return [
        (message.role, [part.text if part.type == "text" else part.type for part in message.content])
        for message in request.build_messages().messages
    ]
