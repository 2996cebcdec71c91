"""Where the rows and the media of MEGA-Bench are, and how the media archive is unpacked."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lmms_eval.errors import DataError
from lmms_eval.tasks._task_utils.archives import alone, rename, unpacked

REPOSITORY = "TIGER-Lab/MEGA-Bench"
CONFIGURATIONS = ("core", "open", "core_single_image", "open_single_image")
SPLIT = "test"
DEMO = Path(__file__).parent / "demo"
"""The demonstration, laid out as a copy of the data set with the one configuration ``core``."""
ARCHIVE = "data.zip"
ARCHIVE_SIZE = "9.15 GB"
ARCHIVE_MD5 = "5ec01ab69cd25b643c4f5e1396e96441"
MEDIA_FOLDER = "megabench_data"
_TOP = "data"


def load_rows(configuration: str, data_root: str | Path | None = None) -> list[dict[str, Any]]:
    """All rows of a configuration, in order: from a local copy (``--data_root``), else from the hub.

    A local copy holds ``<configuration>/*.parquet``, directly or below ``TIGER-Lab/MEGA-Bench`` or ``MEGA-Bench``.

    Raises:
        DataError: unknown configuration, or the data cannot be found or read.
    """
    if configuration not in CONFIGURATIONS:
        raise DataError(f"MEGA-Bench has no configuration {configuration!r}; use one of {', '.join(CONFIGURATIONS)}")
    from lmms_eval.tasks.data.splits import DataRequest, open_data

    root = None if data_root is None else str(data_root)
    request = DataRequest(REPOSITORY, configuration, {}, f"MEGA-Bench, configuration {configuration}", root)
    documents = open_data(request, SPLIT).documents(SPLIT)
    return [dict(documents[number]) for number in range(len(documents))]


def hf_home() -> Path:
    """The cache folder of the hub's libraries (``HF_HOME``)."""
    return Path(os.environ.get("HF_HOME") or "~/.cache/huggingface").expanduser()


def media_root(data_root: str | Path | None = None) -> Path:
    """The folder that holds ``data/`` with the pictures and videos.

    Looked for in this order: below ``data_root`` if given; in ``$HF_HOME/megabench_data`` (which may be a symbolic
    link to an unpacked copy; it is never replaced). Where only the archive ``data.zip`` is found, in one of these or
    in the hub's cache, it is unpacked into ``$HF_HOME/megabench_data``.

    Raises:
        DataError: neither media nor archive are there (the message says what to fetch and where to put it), or the
            archive is damaged.
    """
    return _media_root(None if data_root is None else str(data_root), str(hf_home()))


@functools.lru_cache(maxsize=32)
def _media_root(data_root: str | None, home: str) -> Path:
    folders = list(_folders(data_root, Path(home)))
    for folder in folders:
        if (folder / _TOP).is_dir():
            return folder.absolute()
    target = Path(home) / MEDIA_FOLDER
    archives = [folder / ARCHIVE for folder in (*folders, *_snapshots(Path(home))) if (folder / ARCHIVE).is_file()]
    if archives:
        return unpack(archives[0], target).absolute()
    raise DataError(_missing(folders, target))


def _folders(data_root: str | None, home: Path) -> Iterator[Path]:
    if data_root is not None:
        root = Path(data_root).expanduser()
        yield from (root, root / REPOSITORY, root / REPOSITORY.replace("/", "__"), root / REPOSITORY.split("/")[1])
    yield home / MEDIA_FOLDER


def _snapshots(home: Path) -> list[Path]:
    cached = Path(os.environ.get("HF_HUB_CACHE") or home / "hub") / f"datasets--{REPOSITORY.replace('/', '--')}"
    return sorted(cached.glob("snapshots/*"))


def _missing(folders: list[Path], target: Path) -> str:
    tried = ", ".join(str(folder / _TOP) for folder in folders)
    return (
        f"the pictures and videos of MEGA-Bench are not there; looked for {tried}. Download {ARCHIVE} ({ARCHIVE_SIZE}, "
        f"MD5 {ARCHIVE_MD5}) from the data set repository {REPOSITORY} (`hf download {REPOSITORY} {ARCHIVE} "
        f"--repo-type dataset`: it is then found and unpacked by itself), or unpack it so that {target / _TOP} exists, "
        f"or give a folder that holds {_TOP}/ with --data_root DIR"
    )


def unpack(archive: Path, target: Path) -> Path:
    """Unpack the media archive so that ``target/data`` exists, complete or not at all; returns ``target``.

    Raises:
        DataError: the archive is damaged, holds names that lead outside or links, has no top folder ``data/``, or
            does not fit on the disk.
    """
    with alone(target), unpacked(archive, target, f"its MD5 must be {ARCHIVE_MD5}") as folder:
        if not (folder / _TOP).is_dir():
            raise DataError(f"{archive} has no top folder {_TOP}/: is it the archive of {REPOSITORY}?")
        if not (target / _TOP).is_dir():  # else another process was faster
            rename(folder / _TOP, target / _TOP)
    return target
