"""Videos that come as archives of a hub repository: fetched, unpacked beside each other, renamed when complete."""

from __future__ import annotations

import io
import os
import re
import shutil
import tarfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval.errors import DataError

_PART = re.compile(r"(?:[_.-](?:part)?\d+|[_.-]part[a-z]*)$")


def hf_home() -> Path:
    """The cache folder of the hub's libraries."""
    default = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "huggingface"
    return Path(os.environ.get("HF_HOME", default)).expanduser()


def fetch_videos(repository: str, kwargs: Mapping[str, Any], where: str) -> Path:
    """The folder ``HF_HOME/cache_dir`` with the repository's archives unpacked; it exists only if complete.

    Raises:
        DataError: no ``cache_dir``, the repository cannot be fetched, or an archive is damaged.
    """
    if not kwargs.get("cache_dir"):
        raise DataError(f"{where}: dataset_kwargs.video needs cache_dir, the folder for the unpacked videos")
    target = hf_home() / str(kwargs["cache_dir"])
    again = bool(kwargs.get("force_download") or kwargs.get("force_unzip"))
    if target.exists() and not again:
        return target
    snapshot = _snapshot(repository, kwargs, where)
    partial = target.with_name(f"{target.name}.partial-{os.getpid()}")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        if kwargs.get("create_link"):
            partial.symlink_to(snapshot, target_is_directory=True)
        else:
            unpack(snapshot, partial)
        _remove(target)
        partial.rename(target)
    except (OSError, zipfile.BadZipFile, tarfile.TarError) as error:
        raise DataError(f"{where}: archives of {repository} cannot be unpacked to {target}: {error}") from error
    finally:
        _remove(partial)
    return target


def unpack(snapshot: Path, target: Path) -> None:
    """Unpack every ``*.zip`` and ``*.tar*`` below a folder; parts of a split tar are joined in order of their names."""
    target.mkdir(parents=True)
    for archive in sorted(snapshot.rglob("*.zip")):
        with zipfile.ZipFile(archive) as opened:
            _check_names(opened.namelist(), archive)
            opened.extractall(target)
    for parts in _tar_groups(sorted(snapshot.rglob("*.tar*"))):
        with (
            io.BufferedReader(_Joined(parts)) as joined,
            tarfile.open(fileobj=joined, mode="r|*", ignore_zeros=True) as opened_tar,
        ):
            opened_tar.extractall(target, filter="data")


def _snapshot(repository: str, kwargs: Mapping[str, Any], where: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(
            snapshot_download(
                repo_id=repository,
                repo_type="dataset",
                revision=kwargs.get("revision"),
                force_download=bool(kwargs.get("force_download")),
                local_files_only=bool(kwargs.get("local_files_only")),
            )
        )
    except Exception as error:  # network and hub errors have no common class
        raise DataError(
            f"{where}: repository {repository!r} cannot be fetched: {type(error).__name__}: {error}; "
            "check the network and HF_TOKEN"
        ) from error


def _check_names(names: Iterable[str], archive: Path) -> None:
    for name in names:
        if name.startswith(("/", "\\")) or ".." in Path(name).parts:
            raise DataError(f"{archive}: holds the path {name!r}, which would leave the target folder")


def _tar_groups(archives: Sequence[Path]) -> list[list[Path]]:
    groups: dict[tuple[Path, str], list[Path]] = {}
    for archive in archives:
        stem = archive.name.split(".tar")[0]
        groups.setdefault((archive.parent, _PART.sub("", stem)), []).append(archive)
    return list(groups.values())


def _remove(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)


class _Joined(io.RawIOBase):
    """Several files read as one."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = list(files)
        self._current: io.BufferedReader | None = None

    def close(self) -> None:
        if self._current is not None:
            self._current.close()
        super().close()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            if self._current is None:
                if not self._files:
                    return 0
                self._current = self._files.pop(0).open("rb")
            count = self._current.readinto(buffer)
            if count:
                return count
            self._current.close()
            self._current = None
