"""The files of a job on their way to a client: an archive that is unpacked into a folder and nowhere else."""

from __future__ import annotations

import stat
import tempfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from shutil import copyfileobj
from types import TracebackType
from typing import Self

from lmms_eval.errors import DataError, EvaluationServerError
from lmms_eval.storage.atomic import replacing


class Download:
    """An archive that is received, then unpacked; a context manager.

    Args:
        folder: where the files are to lie; made if it is missing.

    Raises:
        DataError: the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed at the end of the block that this opens
        except OSError as error:
            raise _unwritten(folder, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def begin(self) -> None:
        """Forget what an earlier connection has brought."""
        self._file.seek(0)
        self._file.truncate()

    def add(self, data: bytes) -> None:
        """Take the next piece. Raises ``DataError`` where the disk does not."""
        try:
            self._file.write(data)
        except OSError as error:
            raise _unwritten(self._folder, error) from error

    def unpack(self) -> list[Path]:
        """Write the files and return where they are; files of these names are replaced.

        Raises:
            EvaluationServerError: the archive is damaged; or it holds links or names of places outside of the folder,
                and nothing was written.
            DataError: the disk does not take it.
        """
        try:
            with zipfile.ZipFile(self._file) as archive:
                entries = [one for one in archive.infolist() if not one.is_dir()]
                targets = [self._target(one) for one in entries]
                for entry, target in zip(entries, targets, strict=True):
                    with archive.open(entry) as source, replacing(target, survives_power_loss=False) as file:
                        copyfileobj(source, file)
                return targets
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
            raise EvaluationServerError(f"the archive of the job's files is damaged: {error}") from error
        except OSError as error:
            raise _unwritten(self._folder, error) from error

    def _target(self, entry: zipfile.ZipInfo) -> Path:
        name = PurePosixPath(entry.filename)
        mode = entry.external_attr >> 16
        is_file = stat.S_IFMT(mode) in (0, stat.S_IFREG)
        is_plain = not name.is_absolute() and ".." not in name.parts
        target = self._folder.joinpath(*name.parts)
        if not (is_file and is_plain and target.parent.resolve().is_relative_to(self._folder.resolve())):
            place = f"is a link or lies outside of {self._folder}"
            raise EvaluationServerError(f"{entry.filename!r} of the job's files {place}: nothing was written")
        return target


def _unwritten(folder: Path, error: OSError) -> DataError:
    return DataError(f"{folder}: the job's files cannot be written: {error.strerror or error}")
