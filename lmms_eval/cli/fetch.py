"""``lmms-eval fetch``: downloads data sets of tasks, and data that scoring needs and no package contains."""

from __future__ import annotations

import http.client
import io
import os
import shutil
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

from lmms_eval.api.task import Task
from lmms_eval.cli.arguments import TaskSources, add_catalogue_flags, command_parser
from lmms_eval.cli.output import emit
from lmms_eval.errors import DataError, LmmsEvalError, UsageError
from lmms_eval.tasks._task_utils.media_files import hf_home
from lmms_eval.tasks.data.remote import NeededFiles, download_of
from lmms_eval.tasks.data.snapshot import fetch_videos
from lmms_eval.tasks.data.splits import DataRequest, is_on_hub
from lmms_eval.tasks.facts import facts_of
from lmms_eval.tasks.yaml.task import YamlTask

_MOST_SHOWN = 20
_UNITS = ("B", "kB", "MB", "GB", "TB")
_FAILURES = (ValueError, OSError, http.client.HTTPException, EOFError)
"""Errors that NLTK's downloader raises if a server, name, archive or folder cannot be used."""


def fetch_tasks(tasks: Sequence[Task], is_dry: bool) -> list[str]:
    """Fetch the data of tasks and try each task. Return a message for each task that is not ready.

    Args:
        tasks: tasks that are not loaded yet.
        is_dry: only report what would be fetched.
    """
    failures = []
    known: dict[tuple[str, str, str], NeededFiles] = {}
    for task in tasks:
        try:
            request = task.data_request if isinstance(task, YamlTask) else None
            if request is None or not is_on_hub(request):
                emit(f"{task.name}: nothing to fetch: its data are local, or read by its own code")
            else:
                key = (str(request.path), request.name or "", str(request.kwargs.get("revision")))
                if key not in known:
                    known[key] = download_of(request)
                    emit(_described(known[key]))
                    if not is_dry:
                        _get(known[key], request)
            if not is_dry:
                emit(_tried(task))
        except (LmmsEvalError, OSError) as error:
            failures.append(f"{task.name}: {error}")
    absent = {file for download in known.values() for file in download.absent}
    if is_dry:
        size = sum(file.size for file in {file for download in known.values() for file in download.files})
        emit(f"Total {shown_size(size)}; {shown_size(sum(file.size for file in absent))} to download")
    return failures


def _get(download: NeededFiles, request: DataRequest) -> None:
    """Download and verify all files, then unpack archives of videos.

    Raises ``DataError`` if the disk is too small, or a file cannot be fetched or is damaged.
    """
    needed = sum(file.size for file in download.absent) + (download.size if download.folder is not None else 0)
    place = next(place for place in (hf_home(), *hf_home().absolute().parents) if place.exists())
    if needed > (free := shutil.disk_usage(place).free):
        raise DataError(
            f"{download.repository}: {shown_size(needed)} are needed in {hf_home()} (unpacked archives too), and "
            f"{shown_size(free)} are free: make room, or name another folder with HF_HOME"
        )
    for file in download.files:
        file.fetch()
    if download.folder is not None:
        emit(f"  unpacked: {fetch_videos(download.repository, request.kwargs, request.where)}")


def _tried(task: Task) -> str:
    """Open the data, check the files of all documents, and build the first prompt with its media."""
    from lmms_eval.models.baseline import open_media

    task.load()
    task.check_files(range(len(task)))
    for request in task.exchange(0, 0).open():
        open_media(request.build_messages())
    facts = facts_of(task.name)
    text = f"{task.name}: ready, {len(task):,} documents"
    if facts is not None and facts.documents not in (None, len(task)):
        text += f" (its card says {facts.documents:,}: the data set has changed, or this is a part of it)"
    return text


def _described(download: NeededFiles) -> str:
    name = " ".join(filter(None, (download.repository, download.configuration)))
    rest = sum(file.size for file in download.absent)
    text = f"{name}: {len(download.files)} files, {shown_size(download.size)}, {shown_size(rest)} to download"
    archives = f"; unpacked to {download.folder}" if download.folder is not None else ""
    lines = [f"  {shown_size(file.size):>9}  {file.path}" for file in download.files[:_MOST_SHOWN]]
    more = len(download.files) - len(lines)
    return "\n".join([text + archives, *lines, *([f"  ... and {more} more"] if more else [])])


def shown_size(size: float) -> str:
    """Return a number of bytes with a unit, in thousands: ``1.2 GB``."""
    for unit in _UNITS[:-1]:
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} {_UNITS[-1]}"


class FetchError(LmmsEvalError):
    """The data could not be fetched."""


def run(arguments: Sequence[str]) -> int:
    parser = command_parser("fetch", "get and check what tasks need; nothing is ever fetched while scoring")
    parser.add_argument(
        "what", metavar="TASKS",
        help="tasks, groups or tags, with commas; or nltk: NLTK's data (punkt_tab, wordnet)",
    )  # fmt: skip
    parser.add_argument(
        "--to", metavar="DIR", help="nltk: folder to install into; default: the first of NLTK_DATA, else ~/nltk_data"
    )
    parser.add_argument("--dry-run", "--dry_run", action="store_true", help="show what would be fetched, and its size")
    parser.add_argument(
        "--data_root", "--data-root", metavar="DIR", help="folder with local data, which is not downloaded again"
    )
    add_catalogue_flags(parser, "ERROR")
    given = parser.read(arguments)
    if given.what != "nltk":
        if given.to:
            raise UsageError("fetch: --to is for nltk; data sets go to HF_HOME, where runs look for them")
        from lmms_eval.api.task import TaskOptions
        from lmms_eval.tasks.selection import select_tasks

        source = TaskSources.of_flags(given)
        options = TaskOptions(data_root=given.data_root, run_options=source.run_options)
        tasks = select_tasks([given.what], source.open(), options).tasks
        failures = fetch_tasks(tasks, given.dry_run)
        if not given.dry_run and _is_nltk_wanted([task.name for task in tasks]):
            fetch_nltk(default_folder())
        if failures:
            raise FetchError("\n".join([f"fetch: {len(failures)} of {len(tasks)} tasks are not ready:", *failures]))
        return 0
    folder = Path(given.to).expanduser().absolute() if given.to else default_folder()
    if given.dry_run:
        emit(f"NLTK's punkt_tab and wordnet would be installed in {folder}")
        return 0
    fetch_nltk(folder)
    if given.to:
        from lmms_eval.tasks._task_utils.linguistic import data_folders

        if folder not in [searched.absolute() for searched in data_folders()]:
            emit(f"give --nltk_data {folder} to evaluations, or set NLTK_DATA")
    return 0


def _is_nltk_wanted(names: Iterable[str]) -> bool:
    """Return whether a task needs NLTK's data and they are missing."""
    from lmms_eval.api.outcome import NotEvaluated
    from lmms_eval.tasks._task_utils.linguistic import open_linguistics
    from lmms_eval.tasks.facts import facts_of

    if not any(facts is not None and "nltk" in facts.needs for facts in map(facts_of, names)):
        return False
    try:
        open_linguistics()
    except NotEvaluated:
        return True
    return False


def default_folder() -> Path:
    """Return the folder of NLTK's data: the first of NLTK_DATA, else ``~/nltk_data``."""
    default = os.environ.get("NLTK_DATA", "").split(os.pathsep)[0] or "~/nltk_data"
    return Path(default).expanduser().absolute()


def fetch_nltk(folder: Path) -> None:
    """Download both packages with NLTK's downloader, read them once, and print their folder.

    Raises:
        UsageError: NLTK is not installed.
        FetchError: the packages cannot be downloaded, written or read.
    """
    from lmms_eval.api.outcome import NotEvaluated
    from lmms_eval.tasks._task_utils.linguistic import PACKAGES, open_linguistics

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings of the many modules that NLTK imports
            from nltk.downloader import Downloader
    except ImportError as error:
        raise UsageError("fetch nltk: nltk is missing; pip install 'lmms_eval[metrics]'") from error
    downloader = Downloader()
    for package in PACKAGES:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            downloader.download(
                package.name, download_dir=str(folder), quiet=True, raise_on_error=True, print_error_to=io.StringIO()
            )
        except _FAILURES as error:
            raise FetchError(
                f"fetch nltk: {package.name} cannot be installed in {folder}: {error}. Without a network, copy the "
                "folder nltk_data of another machine and name it with --nltk_data DIR"
            ) from error
    try:
        open_linguistics(str(folder))
    except NotEvaluated as unusable:
        raise FetchError(f"fetch nltk: what was downloaded cannot be used: {unusable.reason}") from unusable
    emit(f"NLTK's data: {folder}")
