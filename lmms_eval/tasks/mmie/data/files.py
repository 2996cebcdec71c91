"""The files of MMIE: finding, downloading and unpacking them, and the files of picture names.

The data set is gated: ``data.json`` (all questions) and ``images.tar.gz`` come from the hub after its terms are
accepted.
"""

from __future__ import annotations

import functools
import os
import tempfile
from pathlib import Path
from typing import Any

from lmms_eval.errors import DataError, MissingDataError
from lmms_eval.tasks._task_utils.archives import alone, rename, unpacked
from lmms_eval.tasks._task_utils.media_files import copies_below, hf_home, hub_snapshots
from lmms_eval.tasks.mmie.settings import Settings
from lmms_eval.tasks.mmie.view import ViewedPicture

REPOSITORY = "MMIE/MMIE"
FILES = ("data.json", "overview.json")
"""All questions, or the excerpt that shows the format."""
ARCHIVE, IMAGES = "images.tar.gz", "images"
FOLDER = "mmie_data"
"""Folder below ``HF_HOME`` for unpacked pictures and data."""
ROOT_VARIABLE = "MMIE_IMAGE_ROOT"
"""Variable with further folders of pictures."""
_PLACES = (ROOT_VARIABLE, "HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME", "HOME")
"""Variables that affect the search for files."""
ACCESS = (
    f"The data set {REPOSITORY} is gated: open its page on the hub while logged in and accept the terms (access is "
    f"granted at once), then set HF_TOKEN or run `hf auth login`, and fetch it with `hf download {REPOSITORY} "
    f"--repo-type dataset`: it is then found by itself. Or give a folder that holds {FILES[0]} and {IMAGES}/ with "
    "--data_root DIR"
)


def data_file(settings: Settings) -> Path:
    """Find the records: in the settings' own folder, below ``--data_root``, in ``$HF_HOME/mmie_data``, or on the hub.

    Raises ``DataError`` if they were not found and cannot be downloaded.
    """
    if settings.folder is not None:
        folders = [settings.folder]
    elif settings.data_root is not None:
        folders = copies_below(settings.data_root, REPOSITORY)
    else:
        folders = [hf_home() / FOLDER, *hub_snapshots(REPOSITORY)]
    files = [folder / name for folder in folders for name in FILES]
    if found := next(filter(Path.is_file, files), None):
        return found
    tried = ", ".join(str(folder / FILES[0]) for folder in folders)
    if settings.data_root is not None or settings.folder is not None:
        raise MissingDataError(f"the records of MMIE are not there; looked for {tried}. {ACCESS}")
    return _fetch(tried)


def _fetch(tried: str) -> Path:
    """Fetch the data set from the hub, archive of pictures included, and return its file of records."""
    from huggingface_hub import snapshot_download

    try:
        folder = Path(
            snapshot_download(repo_id=REPOSITORY, repo_type="dataset", allow_patterns=[*FILES, ARCHIVE, f"{IMAGES}/*"])
        )
    except Exception as error:  # network and hub errors have no common class
        raise DataError(
            f"the records of MMIE are not there (looked for {tried}) and cannot be fetched: {type(error).__name__}: "
            f"{error}. {ACCESS}"
        ) from error
    if found := next(filter(Path.is_file, (folder / name for name in FILES)), None):
        return found
    raise DataError(f"{REPOSITORY} on the hub does not hold any of {', '.join(FILES)}. {ACCESS}")


class ImageFinder:
    """Finds the file of a picture by its name in a record."""

    def __init__(self, roots: list[Path]) -> None:
        self.roots = roots

    def __call__(self, image: Any) -> ViewedPicture | str:
        """Return the picture for the judge's view, or the name of a missing one."""
        found = self.find(image)
        return str(image) if found is None else ViewedPicture(found)

    def find(self, image: Any) -> str | None:
        """Return the file, or ``None``. Absolute paths are unchanged."""
        name = str(image)
        if not name:
            return None
        for root in self.roots:
            for path in (root / name, root / name.removeprefix(f"{IMAGES}/")):
                if path.is_file():
                    return str(path)
        return None


def image_finder(settings: Settings) -> ImageFinder:
    """Return the finder of the pictures that these settings' records name, after unpacking them if needed.

    Raises ``DataError`` if the records cannot be found, or the archive cannot be unpacked.
    """
    return _finder(settings, tuple(map(os.environ.get, _PLACES)))


@functools.lru_cache(maxsize=16)
def _finder(settings: Settings, places: tuple[str | None, ...]) -> ImageFinder:  # noqa: ARG001 - another key, other files
    """Make the finder once for settings and environment, because every document needs it."""
    beside, unpacked_here = data_file(settings).parent.absolute(), hf_home() / FOLDER
    roots = os.environ.get(ROOT_VARIABLE), settings.media_root
    given = [Path(root).expanduser().absolute() for root in roots if root]
    if not (beside / IMAGES).is_dir() and (beside / ARCHIVE).is_file() and not (unpacked_here / IMAGES).is_dir():
        unpack(beside / ARCHIVE, unpacked_here)
    return ImageFinder([beside, *given, *([unpacked_here] if (unpacked_here / IMAGES).is_dir() else [])])


def unpack(archive: Path, target: Path) -> None:
    """Unpack the pictures so that ``target/images`` exists, complete or not at all.

    Raises ``DataError`` if the archive is damaged or holds names that lead outside, or the disk is full.
    """
    with alone(target):
        if not (target / IMAGES).is_dir():  # otherwise another process has finished first
            with unpacked(archive, target) as folder:
                rename(_pictures(folder), target / IMAGES)


def _pictures(folder: Path) -> Path:
    """Return the folder of pictures in the unpacked files. An archive without one holds its content directly."""
    if (folder / IMAGES).is_dir():
        return folder / IMAGES
    entries, made = list(folder.iterdir()), Path(tempfile.mkdtemp(dir=folder))
    made.chmod(folder.parent.stat().st_mode)
    for entry in entries:
        rename(entry, made / entry.name)
    return made
