"""Hub files that a task needs: lists them with sizes and digests, downloads and verifies them before a run."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lmms_eval.errors import DataError, MissingDataError
from lmms_eval.tasks.data.snapshot import video_folder

if TYPE_CHECKING:
    from lmms_eval.tasks.data.splits import DataRequest

_ADDRESS = re.compile(r"hf://datasets/(?P<repository>[^/]+(?:/[^/@]+)?)@(?P<revision>[^/]+)/(?P<path>.+)")
_ASKED_AT_ONCE = 500
"""Most paths in one request for sizes and digests."""


class RemoteFile(Struct, frozen=True):
    """A file of a data set on the hub."""

    repository: str
    revision: str | None
    path: str
    size: int
    """Bytes."""
    digest: str
    """Digest from the hub: the SHA-256 of the content, or Git's SHA-1 for a small file."""

    def cached(self) -> Path | None:
        """Return the file in the hub's cache; ``None`` if it is not cached."""
        from huggingface_hub import try_to_load_from_cache

        found = try_to_load_from_cache(self.repository, self.path, revision=self.revision, repo_type="dataset")
        return Path(found) if isinstance(found, str) else None

    def fetch(self) -> Path:
        """Download the file unless it is cached, resuming an interrupted download, and verify it.

        Raises ``DataError`` if it cannot be downloaded, or its digest is wrong; then it is removed from the cache.
        """
        from huggingface_hub import hf_hub_download

        with _told(self.repository):
            file = Path(hf_hub_download(self.repository, self.path, repo_type="dataset", revision=self.revision))
        if not self._is_whole(file):
            file.resolve().unlink(missing_ok=True)
            file.unlink(missing_ok=True)
            raise DataError(
                f"{self.repository}: {self.path}: what was fetched has not the digest that the hub states "
                f"({self.digest[:16]}...); it was removed: start again"
            )
        return file

    def _is_whole(self, file: Path) -> bool:
        if file.stat().st_size != self.size:
            return False
        by_git = len(self.digest) == hashlib.sha1(usedforsecurity=False).digest_size * 2
        made = hashlib.sha1(f"blob {self.size}\0".encode(), usedforsecurity=False) if by_git else hashlib.sha256()
        with file.open("rb") as content:
            while block := content.read(1 << 20):
                made.update(block)
        return made.hexdigest() == self.digest


class NeededFiles(Struct, frozen=True):
    """The files that one configuration of a data set needs."""

    repository: str
    configuration: str
    files: tuple[RemoteFile, ...]
    folder: Path | None = None
    """Folder for the unpacked archives of videos; ``None`` if that is done or not needed."""

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def absent(self) -> tuple[RemoteFile, ...]:
        """The files that the hub's cache lacks."""
        return tuple(file for file in self.files if file.cached() is None)


def download_of(request: DataRequest) -> NeededFiles:
    """List the files that a task takes from the hub: those of its configuration, and archives of videos.

    Raises ``DataError`` if the hub cannot be reached.
    """
    from lmms_eval.tasks.data.splits import hub_arguments

    repository, kwargs = str(request.path), request.kwargs
    folder = video_folder(kwargs, request.where) if kwargs.get("video") else None
    with _told(repository):
        if folder is not None and not folder.exists():
            from huggingface_hub import HfApi

            revision = kwargs.get("revision")
            found = HfApi().list_repo_tree(repository, recursive=True, revision=revision, repo_type="dataset")
            return NeededFiles(repository, request.name or "", tuple(_files(repository, revision, found)), folder)
        import datasets

        stated = datasets.load_dataset_builder(repository, request.name, **hub_arguments(request)).config.data_files
        addresses = [address for of_split in (stated or {}).values() for address in of_split]
        return NeededFiles(repository, request.name or "", tuple(_stated(addresses)))


def _stated(addresses: Iterable[str]) -> Iterator[RemoteFile]:
    """Return the files of addresses. Addresses outside the hub are skipped, and the run downloads them."""
    from huggingface_hub import HfApi

    by_place: dict[tuple[str, str], list[str]] = {}
    for match in filter(None, map(_ADDRESS.fullmatch, addresses)):
        by_place.setdefault((match["repository"], match["revision"]), []).append(match["path"])
    for (repository, revision), paths in by_place.items():
        once = list(dict.fromkeys(paths))
        for start in range(0, len(once), _ASKED_AT_ONCE):
            some = once[start : start + _ASKED_AT_ONCE]
            found = HfApi().get_paths_info(repository, some, revision=revision, repo_type="dataset")
            yield from _files(repository, revision, found)


def _files(repository: str, revision: str | None, entries: Iterable[Any]) -> Iterator[RemoteFile]:
    """Yield the files among entries of the hub, which lists folders too."""
    for entry in entries:
        if (size := getattr(entry, "size", None)) is not None:
            digest = entry.lfs.sha256 if entry.lfs is not None else entry.blob_id
            yield RemoteFile(repository, revision, entry.path, size, digest)


@contextmanager
def _told(repository: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # network and hub errors have no common class
        kind = MissingDataError if isinstance(error, ConnectionError | FileNotFoundError) else DataError
        raise kind(
            f"data set {repository!r} of the hub: {type(error).__name__}: {error}; check the name and the network, and "
            "log in with HF_TOKEN if it is gated"
        ) from error
