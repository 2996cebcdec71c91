"""Where the files that a task's documents name may lie."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval.tasks.data.locate import data_root_folders
from lmms_eval.tasks.data.snapshot import hf_home

if TYPE_CHECKING:
    from lmms_eval.tasks.yaml.config import TaskConfig

ROOT_VARIABLE = "LMMS_EVAL_MEDIA_ROOT"
_USUAL_FOLDERS = ("images", "videos")
"""Folders that tasks' functions put in front of a column's value."""


def media_folders(config: TaskConfig, file: str, data_root: str | None, prompt_options: Any) -> list[Path]:
    """Folders from which a relative path of a document may start, most particular first; only those that exist.

    Args:
        config: the task.
        file: its YAML file, or a description of where the configuration was given.
        data_root: the run's local copy of data sets.
        prompt_options: ``lmms_eval_specific_kwargs`` for this model; a ``data_folder`` in it starts beside the file.
    """
    found = dict.fromkeys(_folders(config, Path(file), data_root, prompt_options))
    roots = [folder for folder in found if folder.is_dir()]
    return [*roots, *(root / name for root in roots for name in _USUAL_FOLDERS if (root / name).is_dir())]


def _folders(config: TaskConfig, file: Path, data_root: str | None, prompt_options: Any) -> Iterator[Path]:
    beside = [file.parent] if file.is_file() else []
    if isinstance(prompt_options, Mapping) and prompt_options.get("data_folder"):
        yield from (folder / str(prompt_options["data_folder"]) for folder in (*beside, Path()))
    if os.environ.get(ROOT_VARIABLE):
        yield Path(os.environ[ROOT_VARIABLE]).expanduser()
    path = "" if callable(config.dataset_path) else str(config.dataset_path or "")
    if data_root is not None and Path(data_root).expanduser().is_dir():
        yield (root := Path(data_root).expanduser())
        yield from data_root_folders(root, path, file.name) if path else ()
    cache_dir = (config.dataset_kwargs or {}).get("cache_dir")
    if cache_dir:
        yield from (hf_home() / str(cache_dir), Path(str(cache_dir)).expanduser())
    yield from beside
    yield from (folder / path for folder in beside if path)
    yield Path()
