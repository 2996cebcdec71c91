"""Files that are replaced as a whole: at any instant the old or the new one is there, complete."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from lmms_eval.errors import JournalError


@contextlib.contextmanager
def replacing(path: Path, survives_power_loss: bool = True) -> Iterator[IO[bytes]]:
    """A binary file to write into; it takes the place of ``path`` when the block ends, and is removed if it raises.

    The folder is made if it is missing.

    Args:
        survives_power_loss: wait until the disk has it; not needed for what the same command makes again.

    Raises:
        OSError: the folder cannot be made, or the file not be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "wb", buffering=1 << 20) as file:
            yield file
            file.flush()
            if survives_power_loss:
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:  # also where the caller, whose block runs inside, is interrupted
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file as a whole, or leave it as it was.

    Raises:
        JournalError: the folder is missing, read-only or full.
    """
    try:
        with replacing(path) as file:
            file.write(data)
    except OSError as error:
        raise JournalError(f"cannot write {path}: {error.strerror or error}") from error
