"""Files and addresses that the documents of a task may name, where the data came from the hub."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from lmms_eval.api.task import TaskOptions
from lmms_eval.media.policy import MediaPolicy
from lmms_eval.tasks._task_utils.media_files import hf_home

if TYPE_CHECKING:
    from lmms_eval.tasks.yaml.config import TaskConfig

_CACHES = ("HF_HUB_CACHE", "HF_DATASETS_CACHE")


def media_policy(config: TaskConfig, file: str, options: TaskOptions) -> MediaPolicy:
    """Make the policy of a task: its files are in the hub's caches, the data and media roots, or its YAML folder."""
    return MediaPolicy.of(Path(file).name, _roots(config, Path(file), options), options.allowed_media)


def _roots(config: TaskConfig, file: Path, options: TaskOptions) -> Iterator[Path]:
    yield hf_home()
    yield from (Path(folder).expanduser() for name in _CACHES if (folder := os.environ.get(name)))
    yield from options.media_roots
    if options.data_root is not None:
        yield Path(options.data_root).expanduser()
    if file.is_file():
        yield file.parent
    cache_dir = PurePath(str((config.dataset_kwargs or {}).get("cache_dir") or "/"))
    if not cache_dir.is_absolute() and ".." not in cache_dir.parts and cache_dir.parts:
        yield from (Path(cache_dir), hf_home() / cache_dir)  # the latter may be a link to the folder of its archives
