"""Writes a benchmark's files: answers for its organisers to score, and whatever its scripts and reports leave."""

from __future__ import annotations

import csv
import datetime
import io
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lmms_eval.api.outcome import Estimate
from lmms_eval.errors import DataError
from lmms_eval.storage.atomic import replacing


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


def submission_path(args: Any, file_name: str) -> Path | None:
    """Return the path of the file ``OUT/submissions/FILE_NAME``, or ``None`` without an output folder."""
    folder = getattr(args, "output_path", None)
    return (Path(folder) / "submissions" / file_name).resolve() if folder else None


def write_whole(path: Path, content: str | bytes, kind: str = "", survives_power_loss: bool = True) -> None:
    """Write a file so that at any moment the old or the new one is there, complete.

    Args:
        path: the file; a missing folder is made.
        content: bytes, or a text that becomes UTF-8.
        kind: words before the path in the error, such as ``"predictions "``.
        survives_power_loss: not needed for a file that the same command can write again.

    Raises:
        DataError: it cannot be written.
    """
    data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    try:
        with replacing(path.absolute(), survives_power_loss) as file:
            file.write(data)
    except OSError as error:
        raise DataError(f"{kind}{path} cannot be written: {error.strerror or error}") from error


def indented_json(content: Any, ensure_ascii: bool = True) -> str:
    """Return the text of ``json.dumps(content, indent=4)``, in a third of its time.

    The encoder in C writes no indents, so they are put in afterwards. Texts that are not strict JSON (NaN, half
    surrogates) are encoded with indents at once.
    """
    try:
        return msgspec.json.format(json.dumps(content, ensure_ascii=ensure_ascii), indent=4)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return json.dumps(content, ensure_ascii=ensure_ascii, indent=4)


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Return the text of a CSV file with ``\\n`` as line end."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def stamp(form: str = "%Y-%m-%d-%H-%M-%S") -> str:
    """Return the time in UTC for names of submission files."""
    return datetime.datetime.now(datetime.UTC).strftime(form)
