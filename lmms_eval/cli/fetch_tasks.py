"""Fetching the data of tasks: what the hub has is downloaded and verified, archives are unpacked, the data opened."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from lmms_eval.api.task import Task
from lmms_eval.cli.output import emit
from lmms_eval.errors import DataError, LmmsEvalError
from lmms_eval.tasks._task_utils.media_files import hf_home
from lmms_eval.tasks.data.remote import Download, download_of
from lmms_eval.tasks.data.snapshot import fetch_videos
from lmms_eval.tasks.data.splits import DataRequest, is_on_hub
from lmms_eval.tasks.facts import facts_of
from lmms_eval.tasks.yaml.task import YamlTask

_MOST_SHOWN = 20
_UNITS = ("B", "kB", "MB", "GB", "TB")


def fetch_tasks(tasks: Sequence[Task], is_dry: bool) -> list[str]:
    """Fetch what tasks need, or say what that is, and try each; return a sentence for each that is not ready.

    Args:
        tasks: not loaded.
        is_dry: fetch nothing.
    """
    failures = []
    known: dict[tuple[str, str, str], Download] = {}
    for task in tasks:
        try:
            _fetch(task, is_dry, known)
        except (LmmsEvalError, OSError) as error:
            failures.append(f"{task.name}: {error}")
    absent = {file for download in known.values() for file in download.absent}
    if is_dry:
        size = sum(file.size for file in {file for download in known.values() for file in download.files})
        emit(f"in all {shown_size(size)}, of which {shown_size(sum(file.size for file in absent))} are not here yet")
    return failures


def _fetch(task: Task, is_dry: bool, known: dict[tuple[str, str, str], Download]) -> None:
    request = task.data_request if isinstance(task, YamlTask) else None
    if request is None or not is_on_hub(request):
        emit(f"{task.name}: nothing to fetch: its data are local, or read by its own code")
    else:
        key = (str(request.path), request.name or "", str(request.kwargs.get("revision")))
        if key not in known:
            known[key] = download_of(request)
            emit(_told(known[key]))
            if not is_dry:
                _get(known[key], request)
    if not is_dry:
        emit(_tried(task))


def _get(download: Download, request: DataRequest) -> None:
    """Download and verify all files, then unpack archives of videos.

    Raises:
        DataError: the disk is too small, or a file cannot be fetched or is damaged.
    """
    needed = sum(file.size for file in download.absent) + (download.size if download.folder is not None else 0)
    if needed > (free := shutil.disk_usage(_existing(hf_home())).free):
        raise DataError(
            f"{download.repository}: {shown_size(needed)} are needed in {hf_home()} (unpacked archives too), and "
            f"{shown_size(free)} are free: make room, or name another folder with HF_HOME"
        )
    for file in download.files:
        file.fetch()
    if download.folder is not None:
        emit(f"  unpacked: {fetch_videos(download.repository, request.kwargs, request.where)}")


def _tried(task: Task) -> str:
    """Open the data, look up the files of all documents, and build the first prompt with its media."""
    from lmms_eval.models.media_check import open_media

    task.load()
    task.check_files(range(len(task)))
    for request in task.exchange(0, 0).open():
        open_media(request.build_messages())
    facts = facts_of(task.name)
    text = f"{task.name}: ready, {len(task):,} documents"
    if facts is not None and facts.documents not in (None, len(task)):
        text += f" (its card says {facts.documents:,}: the data set has changed, or this is a part of it)"
    return text


def _told(download: Download) -> str:
    name = " ".join(filter(None, (download.repository, download.configuration)))
    rest = sum(file.size for file in download.absent)
    text = f"{name}: {len(download.files)} files, {shown_size(download.size)}, {shown_size(rest)} of it not here yet"
    archives = f"; unpacked to {download.folder}" if download.folder is not None else ""
    lines = [f"  {shown_size(file.size):>9}  {file.path}" for file in download.files[:_MOST_SHOWN]]
    more = len(download.files) - len(lines)
    return "\n".join([text + archives, *lines, *([f"  ... and {more} more"] if more else [])])


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above that is there."""
    return next(place for place in (folder, *folder.absolute().parents) if place.exists())


def shown_size(size: float) -> str:
    """Return a number of bytes with a unit, in thousands: ``1.2 GB``."""
    for unit in _UNITS[:-1]:
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} {_UNITS[-1]}"
