"""What the documents of a task's data set may name, where the data came from the hub."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from lmms_eval.media.policy import VARIABLE, MediaPolicy
from lmms_eval.tasks.data.snapshot import hf_home
from lmms_eval.tasks.yaml.media_folders import ROOT_VARIABLE

if TYPE_CHECKING:
    from lmms_eval.tasks.yaml.config import TaskConfig

_CACHES = ("HF_HUB_CACHE", "HF_DATASETS_CACHE")


def allowed_media() -> list[str]:
    """What the run allows beyond the data sets' own folders: ``--allow_media``."""
    return [item for part in os.environ.get(VARIABLE, "").split(",") if (item := part.strip())]


def media_policy(config: TaskConfig, file: str, data_root: str | None) -> MediaPolicy:
    """The policy of a task: its data set's files lie in the hub's caches, ``--data_root``, ``--media_root``, or beside
    the task's YAML."""
    return MediaPolicy.of(Path(file).name, _roots(config, Path(file), data_root), allowed_media())


def _roots(config: TaskConfig, file: Path, data_root: str | None) -> Iterator[Path]:
    yield hf_home()
    yield from (Path(folder).expanduser() for name in _CACHES if (folder := os.environ.get(name)))
    if os.environ.get(ROOT_VARIABLE):
        yield Path(os.environ[ROOT_VARIABLE]).expanduser()
    if data_root is not None:
        yield Path(data_root).expanduser()
    if file.is_file():
        yield file.parent
    cache_dir = PurePath(str((config.dataset_kwargs or {}).get("cache_dir") or "/"))
    if not cache_dir.is_absolute() and ".." not in cache_dir.parts and cache_dir.parts:
        yield Path(cache_dir)
