"""Downloads archives of videos from a hub repository, unpacks them into one folder, and renames it when complete."""

from __future__ import annotations

import logging
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from lmms_eval.errors import DataError
from lmms_eval.tasks._task_utils.archives import merge, unpacked
from lmms_eval.tasks._task_utils.media_files import hf_home
from lmms_eval.tasks.data.hub import hub_access

log = logging.getLogger(__name__)
MARKER = ".lmms_eval_unpacked"
"""File in every unpacked folder, with the repository's name. Folders without it are never removed."""

_UNREAD = re.compile(r"\.(?:7z|rar|zst|z\d\d|zip\.\w+)$", re.IGNORECASE)
_MEDIA = re.compile(r"\.(?:png|jpe?g|webp|gif|mp4|avi|mkv|mov|webm|wav|mp3|flac)$", re.IGNORECASE)
_PART = re.compile(r"(?:[_.-](?:part)?\d+|[_.-]part[a-z]*)$")


def fetch_videos(repository: str, kwargs: Mapping[str, Any], where: str) -> Path:
    """Return the folder ``HF_HOME/cache_dir`` with the repository's archives unpacked. It exists only when complete.

    For a repository without archives it is a link to the snapshot. With ``create_link`` it also holds links to the
    files that are not archives.

    With ``force_download`` or ``force_unzip`` a folder with ``MARKER`` is made again. Raises ``DataError`` if
    ``cache_dir`` is absent or outside ``HF_HOME``, the repository cannot be downloaded, an archive is damaged, or a
    folder without ``MARKER`` would have to be replaced.
    """
    target = video_folder(kwargs, where)
    if os.path.lexists(target):
        is_unfinished = target.is_symlink() and _is_in_cache(target) and _is_all_packed(target.resolve())
        if not (kwargs.get("force_download") or kwargs.get("force_unzip") or is_unfinished):
            return target
        # unpacked here, or a link into a snapshot of the hub's cache
        is_ours = _is_in_cache(target) if target.is_symlink() else (target / MARKER).is_file()
        if not is_ours:
            raise DataError(
                f"{where}: dataset_kwargs would replace {target}, which was not unpacked by lmms-eval (it has no "
                f"{MARKER}); move it away yourself, or name another cache_dir"
            )
    snapshot = _snapshot(repository, kwargs, where)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as beside:
            made = Path(beside) / "new"
            if not any(_archives(snapshot)):
                made.symlink_to(snapshot, target_is_directory=True)
            else:
                unpack(snapshot, made)
                if kwargs.get("create_link"):
                    _link_others(snapshot, made)
                (made / MARKER).write_text(f"{repository}\n", encoding="utf-8")
            if os.path.lexists(target):
                target.rename(Path(beside) / "old")
            made.rename(target)
    except OSError as error:
        raise DataError(f"{where}: archives of {repository} cannot be unpacked to {target}: {error}") from error
    return target


def _is_in_cache(link: Path) -> bool:
    """Return whether a link leads into a snapshot of the hub's cache."""
    return "snapshots" in link.readlink().parts


def _is_all_packed(folder: Path) -> bool:
    """Return whether a folder holds archives but no pictures, videos or sounds."""
    return any(_archives(folder)) and not any(_MEDIA.search(file.name) for file in folder.rglob("*"))


def _link_others(snapshot: Path, target: Path) -> None:
    """Link the files that are not archives, at their paths in the repository (``create_link``)."""
    packed = {part for parts in _archives(snapshot) for part in parts}
    for file in sorted(snapshot.rglob("*")):
        place = target / file.relative_to(snapshot)
        if file.is_file() and file not in packed and not os.path.lexists(place):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(file)


def video_folder(kwargs: Mapping[str, Any], where: str) -> Path:
    """Return the folder of a task's unpacked videos, ``HF_HOME/cache_dir``. Raises as ``fetch_videos``."""
    cache_dir = kwargs.get("cache_dir")
    if not cache_dir:
        raise DataError(f"{where}: dataset_kwargs.video needs cache_dir, the folder for the unpacked videos")
    path = PurePosixPath(str(cache_dir))
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise DataError(
            f"{where}: dataset_kwargs.cache_dir {str(cache_dir)!r}: with video: true it names a folder below HF_HOME "
            f"({hf_home()}), such as my_videos; not an absolute path, one with .., or HF_HOME itself"
        )
    return hf_home() / path


def unpack(snapshot: Path, target: Path) -> None:
    """Unpack every ``*.zip`` and ``*.tar*`` below a folder. Parts of a split tar are joined, sorted by name.

    Raises:
        DataError: as ``archives.unpacked``. OSError: the folder cannot be made.
    """
    target.mkdir()
    for parts in _archives(snapshot):
        with unpacked(parts, target) as content:
            merge(content, target)
    for file in sorted(snapshot.rglob("*")):
        if _UNREAD.search(file.name):
            log.warning("%s is an archive of a kind that is not unpacked here: what it holds is missing", file)


def _archives(snapshot: Path) -> Iterator[list[Path]]:
    """Yield the archives below a folder: each ``*.zip`` and ``*.tgz``, and the parts of each ``*.tar*`` in order."""
    for pattern in ("*.zip", "*.tgz"):
        yield from ([archive] for archive in sorted(snapshot.rglob(pattern)))
    tars: dict[tuple[Path, str], list[Path]] = {}
    for archive in sorted(snapshot.rglob("*.tar*"), key=_in_order):
        stem = archive.name.split(".tar")[0]
        tars.setdefault((archive.parent, _PART.sub("", stem)), []).append(archive)
    yield from tars.values()


def _in_order(path: Path) -> list[tuple[int, str]]:
    """Return a sort key that puts ``part10`` after ``part2``."""
    pieces = re.split(r"(\d+)", str(path))
    return [(int(piece), "") if piece.isdigit() else (-1, piece) for piece in pieces]


def _snapshot(repository: str, kwargs: Mapping[str, Any], where: str) -> Path:
    from huggingface_hub import snapshot_download

    with hub_access(f"{where}: repository {repository!r}"):
        return Path(
            snapshot_download(
                repo_id=repository,
                repo_type="dataset",
                revision=kwargs.get("revision"),
                force_download=bool(kwargs.get("force_download")),
                local_files_only=bool(kwargs.get("local_files_only")),
            )
        )
