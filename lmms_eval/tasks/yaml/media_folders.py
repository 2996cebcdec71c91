"""Folders that may hold the files that a task's documents name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval.api.task import TaskOptions
from lmms_eval.tasks._task_utils.media_files import hf_home
from lmms_eval.tasks.data.locate import data_root_folders

if TYPE_CHECKING:
    from lmms_eval.tasks.yaml.config import TaskConfig

_USUAL_FOLDERS = ("images", "videos")
"""Folders that tasks' functions put in front of a column's value."""


def media_folders(config: TaskConfig, file: str, options: TaskOptions, prompt_options: Any) -> list[Path]:
    """Find the folders from which a relative path of a document may start, the most particular first.

    Args:
        config: the task.
        file: its YAML file, or a description of where the configuration was given.
        options: the run's; its local copy of data sets, and its further folder for media.
        prompt_options: ``lmms_eval_specific_kwargs`` for this model; a ``data_folder`` in it starts beside the file.
    """
    found = dict.fromkeys(_folders(config, Path(file), options, prompt_options))
    roots = [folder for folder in found if folder.is_dir()]
    return [*roots, *(root / name for root in roots for name in _USUAL_FOLDERS if (root / name).is_dir())]


def _folders(config: TaskConfig, file: Path, options: TaskOptions, prompt_options: Any) -> Iterator[Path]:
    beside = [file.parent] if file.is_file() else []
    if isinstance(prompt_options, Mapping) and prompt_options.get("data_folder"):
        yield from (folder / str(prompt_options["data_folder"]) for folder in (*beside, Path()))
    yield from options.media_roots
    path = "" if callable(config.dataset_path) else str(config.dataset_path or "")
    data_root = options.data_root
    if data_root is not None and Path(data_root).expanduser().is_dir():
        yield (root := Path(data_root).expanduser())
        yield from data_root_folders(root, path, file.name, config.task or "") if path else ()
    cache_dir = (config.dataset_kwargs or {}).get("cache_dir")
    if cache_dir:
        yield from (hf_home() / str(cache_dir), Path(str(cache_dir)).expanduser())
    yield from beside
    yield from (folder / path for folder in beside if path)
    yield Path()
