"""Folders where tasks of the family keep their media."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any


def resolve_cache_dir(cache_dir: str, base_dir: str | None = None) -> str:
    """Expand variables and ``~`` in the path of a folder, and put ``base_dir`` before it if it is relative.

    Variables that are not set stay as they are; nothing else is normalised.
    """
    folder = os.path.expanduser(os.path.expandvars(cache_dir))
    return folder if base_dir is None or os.path.isabs(folder) else os.path.join(base_dir, folder)


def get_cache_dir(config: Mapping[str, Any], sub_dir: str = "videos") -> str:
    """Return a task's media folder, ``HF_HOME/CACHE_DIR/SUB_DIR``.

    Args:
        config: content of the task's YAML, with ``dataset_kwargs.cache_dir``.
        sub_dir: folder of this kind of media.

    Raises:
        KeyError: the YAML does not have it.
        TypeError: it is no text.
    """
    home = os.path.expanduser(os.environ.get("HF_HOME", "~/.cache/huggingface"))
    return os.path.join(home, config["dataset_kwargs"]["cache_dir"], sub_dir)
