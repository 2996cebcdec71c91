"""Finds media that a document names by a relative path."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval.errors import MediaError

ADDRESSES = ("http://", "https://", "data:", "file://")


def hf_home() -> Path:
    """Return the cache folder of the hub's libraries."""
    default = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "huggingface"
    return Path(os.environ.get("HF_HOME") or default).expanduser()


def copies_below(root: str, repository: str) -> list[Path]:
    """Return the folders that may hold a local copy of a data set: ``root``, and folders of the set's name below it."""
    folder = Path(root).expanduser()
    return [folder, *(folder / name for name in (repository, repository.replace("/", "__"), repository.split("/")[1]))]


def hub_snapshots(repository: str) -> list[Path]:
    """Return the folders of the hub's cache that hold a data set, in order of their names."""
    cache = Path(os.environ.get("HF_HUB_CACHE") or hf_home() / "hub")
    return sorted((cache / f"datasets--{repository.replace('/', '--')}").glob("snapshots/*"))


def find_media(
    value: Any,
    media_type: str = "media",
    *,
    base_dir: str | os.PathLike[str] | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    extensions: Sequence[str] = (),
    env_vars: Iterable[str] = ("LMMS_EVAL_MEDIA_ROOT",),
) -> Any:
    """Return the medium that a document refers to, in a form that a model can open.

    Media in memory (pictures, bytes, sounds), addresses and absolute paths of existing files are returned unchanged, as
    are mappings with bytes. A mapping with only a path or URL is looked up by that. A relative path is looked up below
    ``base_dir``, ``cache_dir`` (itself, and below ``HF_HOME``), the folders named by ``env_vars``, and the current
    folder; each as written and with each of ``extensions`` added.

    Args:
        value: what the document holds.
        media_type: ``image``, ``video`` or ``audio``, for the message of the error.
        base_dir: folder that relative paths start from.
        cache_dir: folder of the data set's unpacked media.
        extensions: endings to try, such as ``.mp4``.
        env_vars: environment variables that name further folders.

    Raises:
        MediaError: the file was not found; the message names the paths that were tried.
    """
    if isinstance(value, Mapping):
        if value.get("bytes") is not None or "array" in value:
            return value
        value = value.get("path") or value.get("url") or value.get(media_type)
    if not isinstance(value, str | os.PathLike):
        if value is None:
            raise MediaError(f"the document names no {media_type}")
        return value
    text = os.fspath(value)
    if text.startswith(ADDRESSES):
        return text
    stated = [cache_dir, hf_home() / cache_dir] if cache_dir is not None else []
    roots = [base_dir, *stated, *filter(None, map(os.environ.get, env_vars)), ""]
    folders = dict.fromkeys(Path(root).expanduser() for root in roots if root is not None)
    tried = []
    for folder in folders:
        for name in (text, *(f"{text}{ending}" for ending in extensions)):
            candidate = folder / name  # an absolute name replaces the folder
            if candidate.is_file():
                return str(candidate)
        tried.append(str(folder))
    raise MediaError(
        f"{media_type} {text!r} not found below {', '.join(tried)}; set LMMS_EVAL_MEDIA_ROOT to its folder"
    )
