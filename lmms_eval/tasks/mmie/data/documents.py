"""Where MMIE's records and pictures lie, and the records as documents.

The data set is gated: ``data.json`` (all questions) and ``images.tar.gz`` come from the hub after accepting its terms.
"""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from loguru import logger

from lmms_eval.errors import DataError, MediaError
from lmms_eval.media.policy import MediaPolicy
from lmms_eval.storage.json_files import read_json
from lmms_eval.tasks._task_utils.archives import alone, rename, unpacked
from lmms_eval.tasks._task_utils.documents import once_per_document
from lmms_eval.tasks.data.snapshot import hf_home
from lmms_eval.tasks.data.splits import Rows
from lmms_eval.tasks.mmie.data.records import Question, Segment, read_question
from lmms_eval.tasks.mmie.data.routing import CATEGORIES, QUESTIONS, route
from lmms_eval.tasks.mmie.settings import Settings
from lmms_eval.tasks.mmie.view import Missing, Picture
from lmms_eval.utils.arguments import comma_list

REPOSITORY = "MMIE/MMIE"
FILES = ("data.json", "overview.json")
"""All questions, or the excerpt that shows the format."""
ARCHIVE, IMAGES = "images.tar.gz", "images"
FOLDER = "mmie_data"
"""Below ``HF_HOME``: where pictures are unpacked, and where data is looked for."""
ROOT_VARIABLE = "MMIE_IMAGE_ROOT"
"""Further folders that paths of pictures start from."""
ACCESS = (
    f"The data set {REPOSITORY} is gated: open its page on the hub while logged in and accept the terms (access is "
    f"granted at once), then set HF_TOKEN or run `hf auth login`, and fetch it with `hf download {REPOSITORY} "
    f"--repo-type dataset`: it is then found by itself. Or give a folder that holds {FILES[0]} and {IMAGES}/ with "
    "--data_root DIR"
)
MAX_SHOWN = 3


def documents(name: str | None = None, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> Rows:
    """The documents of a category's tag, or all (``dataset_path: !function data.documents``).

    Raises:
        DataError: the data is missing (the message says how to get it), or holds records that cannot be used.
    """
    settings = Settings.of(lmms_eval_specific_kwargs)
    file = data_file(settings)
    content = read_json(file)
    if not isinstance(content, list):
        raise DataError(f"{file}: a JSON list of records is needed, not a {type(content).__name__}")
    rows = _rows(content, file, settings)
    wanted = [row for row in rows if name is None or row["category"] == name]
    if not wanted:
        raise DataError(f"{file} holds no record of {name or 'any category'}")
    _tell(rows, file, settings)
    return Rows(wanted, [file])


@once_per_document
def question_of(doc: Mapping[str, Any]) -> Question:
    """A document as a record of the data set."""
    return read_question(doc)


def data_file(settings: Settings) -> Path:
    """The file of records: in the settings' own folder, below ``--data_root``, in ``$HF_HOME/mmie_data``, or the hub's.

    Raises:
        DataError: it is nowhere, and cannot be fetched.
    """
    folders = [settings.folder] if settings.folder is not None else list(_folders(settings.data_root))
    for folder in folders:
        for name in FILES:
            if (folder / name).is_file():
                return folder / name
    tried = ", ".join(str(folder / FILES[0]) for folder in folders)
    if settings.data_root is not None or settings.folder is not None:
        raise DataError(f"the records of MMIE are not there; looked for {tried}. {ACCESS}")
    return _fetch(tried)


def image_finder(settings: Settings) -> ImageFinder:
    """Find the pictures of the records of these settings. Raises ``DataError`` as ``data_file``."""
    roots = os.environ.get(ROOT_VARIABLE, ""), settings.media_root
    return _finder(str(data_file(settings).parent.absolute()), str(hf_home()), roots)


class ImageFinder:
    """From a picture as a record names it to its file."""

    def __init__(self, roots: list[Path]) -> None:
        self.roots = roots

    def __call__(self, image: Any) -> Picture | Missing:
        """For the judge's view."""
        found = self.find(image)
        return Missing(str(image)) if found is None else Picture(found)

    def find(self, image: Any) -> str | None:
        """The file; absolute paths are taken as they are."""
        name = str(image)
        if not name:
            return None
        for root in self.roots:
            for path in (root / name, root / name.removeprefix(f"{IMAGES}/")):
                if path.is_file():
                    return str(path)
        return None


@functools.lru_cache(maxsize=16)
def _finder(folder: str, home: str, roots: tuple[str, ...]) -> ImageFinder:
    beside, unpacked = Path(folder), Path(home) / FOLDER
    given = [Path(root).expanduser().absolute() for root in roots if root]
    if not (beside / IMAGES).is_dir() and (beside / ARCHIVE).is_file() and not (unpacked / IMAGES).is_dir():
        unpack(beside / ARCHIVE, unpacked)
    return ImageFinder([beside, *given, *([unpacked] if (unpacked / IMAGES).is_dir() else [])])


def unpack(archive: Path, target: Path) -> None:
    """Unpack the pictures so that ``target/images`` exists, complete or not at all.

    Raises:
        DataError: the archive is damaged or holds names that lead outside, or the disk is full.
    """
    with alone(target):
        if not (target / IMAGES).is_dir():  # else another process was faster
            with unpacked(archive, target) as folder:
                rename(_pictures(folder), target / IMAGES)


def _pictures(folder: Path) -> Path:
    """The folder of pictures in what was unpacked; an archive without one holds what belongs into it."""
    if (folder / IMAGES).is_dir():
        return folder / IMAGES
    entries, made = list(folder.iterdir()), Path(tempfile.mkdtemp(dir=folder))
    made.chmod(folder.parent.stat().st_mode)
    for entry in entries:
        rename(entry, made / entry.name)
    return made


def _folders(data_root: str | None) -> Iterator[Path]:
    if data_root is not None:
        root = Path(data_root).expanduser()
        yield from (root, root / REPOSITORY, root / REPOSITORY.replace("/", "__"), root / REPOSITORY.split("/")[1])
        return
    yield hf_home() / FOLDER
    cached = Path(os.environ.get("HF_HUB_CACHE") or hf_home() / "hub") / f"datasets--{REPOSITORY.replace('/', '--')}"
    yield from sorted(cached.glob("snapshots/*"))


def _fetch(tried: str) -> Path:
    """The file of records from the hub, the archive of pictures beside it."""
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
    for name in FILES:
        if (folder / name).is_file():
            return folder / name
    raise DataError(f"{REPOSITORY} on the hub holds none of {', '.join(FILES)}. {ACCESS}")


def _rows(content: list[Any], file: Path, settings: Settings) -> list[dict[str, Any]]:
    rows, problems, odd = [], [], []
    media = MediaPolicy.of("MMIE", [file.parent], comma_list(settings.allow_media))
    for position, entry in enumerate(content):
        try:
            question = read_question(entry)
        except DataError as error:
            problems.append(f"record {position}: {error}")
            continue
        found = route(question.id, question.category, settings.category_by == "name")
        if found.category is None:
            problems.append(f"record {position}: id {question.id!r} holds none of {', '.join(CATEGORIES)}")
            continue
        if found.warning:
            odd.append(found.warning)
        if outside := _outside(question, media):
            problems.append(f"record {position}: the picture {outside!r} is outside of the data set's folder")
            continue
        rows.append(_row(question, position, found.category))
    if problems:
        raise DataError(f"{file}: {len(problems)} records cannot be used: {_some(problems)}")
    if odd:
        logger.warning("{}: {} records of odd category: {}", file, len(odd), _some(odd))
    return rows


def _outside(question: Question, media: MediaPolicy) -> str:
    """The first picture that leads out of the data set's folder, unless it is allowed; empty if none does."""
    for segment in (*question.question, *question.reference):
        name = "" if segment.image is None else str(segment.image)
        if name.startswith("/") or ".." in name.split("/"):
            try:
                media.check_file(str(media.roots[0] / Path(name)))
            except MediaError:
                return name
    return ""


def _row(question: Question, position: int, category: str) -> dict[str, Any]:
    return {
        "id": str(question.id),
        "position": position,
        "category": category,
        "field": question.field,
        "subfield": question.subfield,
        "question": _segments(question.question),
        "gt_answer": _segments(question.reference) or [{"text": None, "image": None}],
    }


def _segments(segments: tuple[Segment, ...]) -> list[dict[str, str | None]]:
    return [
        {"text": segment.text, "image": None if segment.image is None else str(segment.image)} for segment in segments
    ]


def _tell(rows: list[dict[str, Any]], file: Path, settings: Settings) -> None:
    total = sum(QUESTIONS.values())
    if settings.folder is None and len(rows) != total:
        logger.warning("{} holds {} questions, the benchmark has {}: no published number", file, len(rows), total)


def _some(items: list[str]) -> str:
    return "; ".join(items[:MAX_SHOWN]) + ("; ..." if len(items) > MAX_SHOWN else "")
