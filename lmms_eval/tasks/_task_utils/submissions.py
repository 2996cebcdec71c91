"""Writes files of answers for a benchmark's organisers to score, from aggregations without a value."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lmms_eval.api.outcome import Estimate
from lmms_eval.errors import DataError


def written_json(content: Any, file_name: str, args: Any, folder: str = "submissions") -> Estimate:
    """Write ``OUT/FOLDER/FILE_NAME`` as JSON; without an output folder nothing is written. See ``written``."""
    text = json.dumps(content, ensure_ascii=False)
    return written(lambda path: path.write_text(text, "utf-8"), file_name, args, folder)


def written(write: Callable[[Path], Any], file_name: str, args: Any, folder: str = "submissions") -> Estimate:
    """Call ``write`` for the file ``OUT/FOLDER/FILE_NAME`` and return an estimate without a value that names the file.

    Args:
        write: writes the file at the given path.
        file_name: name of the file.
        args: the run's arguments, as aggregations get them.
        folder: folder below the output path.

    Raises:
        DataError: the file cannot be written.
    """
    output_path = getattr(args, "output_path", None)
    if not output_path:
        return Estimate(None, notes=("without --output_path no file is written",))
    path = (Path(output_path) / folder / file_name).resolve()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}") from error
    return Estimate(None, details={"submission_files": [str(path)]})


def stamp(form: str = "%Y-%m-%d-%H-%M-%S") -> str:
    """Return the time in UTC for names of submission files."""
    return datetime.datetime.now(datetime.UTC).strftime(form)
