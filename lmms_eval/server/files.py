"""The files of a job's run: listed, read one by one, and as a zip archive that is made while it is sent."""

from __future__ import annotations

import contextlib
import os
import stat
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, cast

from lmms_eval.results.run_reader.finding import read_state, results_date
from lmms_eval.server.folder import JobFolder
from lmms_eval.server.job import Job
from lmms_eval.server.outcome import output_of, records, results_files

_PIECE, _LARGE = 1 << 20, 1 << 30
_LEFT_OUT = frozenset({"owner.json"})


def files_of(job: Job, folder: JobFolder) -> Mapping[str, Path]:
    """List the regular files that a job's run has written, by their names below its output folder.

    Of an output folder that other runs write into too these are the ones of its date stamps and journals. Links are
    left out: they may lead anywhere.
    """
    output = output_of(job, folder)
    if not job.request.get("output_dir"):
        found = _below(output)
    else:
        found = [path for place, stamp in _stamps(job, folder) for path in _stamped(place, stamp)]
        found += [path for record in records(job, folder) for path in _below(record)]
    return {str(path.relative_to(output)): path for path in sorted(set(found))}


def _stamps(job: Job, folder: JobFolder) -> set[tuple[Path, str]]:
    ended = {(path.parent, results_date(path.name) or "") for path in results_files(job, folder)}
    begun = {(record.parent.parent, str(read_state(record).get("stamp") or "")) for record in records(job, folder)}
    return {(place, stamp) for place, stamp in ended | begun if stamp}


def _stamped(place: Path, stamp: str) -> Iterator[Path]:
    for path in place.glob(f"{stamp}_*"):
        yield from _below(path)


def _below(place: Path) -> list[Path]:
    if _is_file(place):
        return [place]
    if place.is_symlink():
        return []
    return [
        Path(parent) / name
        for parent, _, names in os.walk(place)
        for name in names
        if name not in _LEFT_OUT and not name.endswith((".tmp", ".reserved")) and _is_file(Path(parent) / name)
    ]


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


class _Sink:
    """Target of a zip archive; what was written is taken out piece by piece."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        pass

    def take(self) -> bytes:
        taken = b"".join(self._pieces)
        self._pieces.clear()
        return taken


def zip_stream(files: Mapping[str, Path]) -> Iterator[bytes]:
    """Make an archive piece by piece; memory holds one piece. A file that is gone meanwhile is left out."""
    sink = _Sink()
    with zipfile.ZipFile(cast(IO[bytes], sink), "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, path in files.items():
            with contextlib.suppress(FileNotFoundError):
                for _ in _add(archive, name, path):
                    yield sink.take()
    yield sink.take()


def _add(archive: zipfile.ZipFile, name: str, path: Path) -> Iterator[None]:
    """Add a file, as long as it is at the beginning: a run that goes on writes behind that."""
    with open(path, "rb") as source:
        left = os.fstat(source.fileno()).st_size
        entry = zipfile.ZipInfo.from_file(path, name, strict_timestamps=False)
        entry.compress_type = zipfile.ZIP_DEFLATED
        with archive.open(entry, "w", force_zip64=left > _LARGE) as target:
            while left > 0 and (data := source.read(min(_PIECE, left))):
                left -= len(data)
                target.write(data)
                yield
