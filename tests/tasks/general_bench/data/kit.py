"""Task folders and items for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lmms_eval.tasks.general_bench.data.forms import load_field_maps
from lmms_eval.tasks.general_bench.data.reading import read_item
from lmms_eval.tasks.general_bench.facts import TaskFacts, find_task
from lmms_eval.tasks.general_bench.items import Annotation, Item


def write_task(folder: Path, task: str = "", items: list[Any] | None = None, **head: Any) -> Path:
    """A task's folder with its annotation; returns the annotation's path."""
    folder.mkdir(parents=True, exist_ok=True)
    stated = {"task": task} if task else {}
    file = folder / "annotation.json"
    file.write_text(json.dumps({**stated, **head, "data": items or []}, ensure_ascii=False), encoding="utf-8")
    return file


def annotation(folder: Path, head: dict[str, Any] | None = None, items: tuple[Any, ...] = ()) -> Annotation:
    return Annotation(folder, folder / "annotation.json", "", "", head or {}, items)


def read(task: str, raw: Any, folder: Path, own: Path | None = None, **head: Any) -> Item:
    """An item of the task of a name."""
    facts: TaskFacts = find_task(task)
    return read_item(facts, annotation(folder, head), raw, folder, load_field_maps(own)(facts))
